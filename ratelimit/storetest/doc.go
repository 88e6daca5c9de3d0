// Package storetest checks that a ratelimit.Store keeps its contract. Every store's
// tests call [Run]; the clock that the store reads is under the suite's control.
//
// It does not check bounds, eviction or failures: those are each store's own.
package storetest
