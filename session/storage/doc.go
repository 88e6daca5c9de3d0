// Package storage has the types and errors of session.Store, the interface of stores. Programs need it only for a store of their own,
// which package storetest checks.
package storage
