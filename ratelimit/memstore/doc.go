// Package memstore keeps counters in the memory of this process.
package memstore
