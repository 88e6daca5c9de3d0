// Package layer has what stands around the engine of package ratelimit: layers that wrap a
// [ratelimit.Store] and are one themselves, so that everything that takes a store takes
// them, too. [New] puts together those that [Options] names, from the outside in:
//
//	Lists      keys that always pass, and keys that never do
//	Shadow     rules that are tried out: they count, and deny nobody
//	DenyCache  answers again what the store has denied
//	Failover   answers in time, whatever the store does
//	Lease      takes units in advance, and spends them without the store
//
// Two types are no layers, and ask a store for their callers: a [Queue] waits for quota
// instead of denying, and [Reservations] take an estimate and settle it.
package layer
