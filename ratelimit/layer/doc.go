// Package layer wraps a [ratelimit.Store] in layers. [New] returns a [Store] with those that
// [Options] name, from the outermost to the innermost:
//
//	Lists      keys that are always allowed, and keys that are always denied
//	Shadow     rules that are evaluated and counted, but not enforced
//	DenyCache  repeats the store's denials without a call of the store
//	Failover   a deadline, a circuit breaker, and answers without the store
//	Lease      takes units in advance, and spends them without the store
package layer
