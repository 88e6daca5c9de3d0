// Package layer has what stands around the engine of package ratelimit: layers that wrap a
// [ratelimit.Store] and are one themselves, so that everything that takes a store takes
// them, too.
//
// From the outside in, and in no other order:
//
//	Lists      keys that always pass, and keys that never do
//	Shadow     rules that are tried out: they count, and deny nobody
//	DenyCache  answers again what the store has denied
//	Failover   answers in time, whatever the store does
//	Lease      takes units in advance, and spends them without the store
//
// Any of them can be left out. A constructor refuses a store whose outermost layer has to
// be further out. The reasons for the order: what is on a list needs nothing else; a
// denial that was only a try must not be remembered as one; what the cache knows doesn't
// need the store, which may be down; and what was leased can be spent while it is down.
//
// Two types are no layers, and ask a store for their callers: a [Queue] waits for quota
// instead of denying, and [Reservations] take an estimate and settle it.
package layer
