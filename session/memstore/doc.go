// Package memstore keeps sessions in the memory of this process.
package memstore
