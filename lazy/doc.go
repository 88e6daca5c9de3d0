// Package lazy computes values once, when they are first used.
//
//   - [New] makes a stand-alone [Value], such as a package-level cache or a connection. Its computation goes on as
//     long as a caller waits for it.
//   - [In] makes a Value that belongs to a [Scope] and is computed when it is first used.
//   - [Go] makes a Value of a Scope and begins to compute it at once: a task whose result is read later.
//   - [All] waits for several values in parallel.
//   - [NewBatch] and [BatchIn] make a [Batch], which loads the values of many keys with a single call.
//   - [Flight] is a computation and its waiters. Values, batches and package reqctx are built on it.
//
// [Value.Get] returns a value. The first caller computes it and the others share the outcome. Reading a computed
// value costs one atomic load. If a waiter's own context ends, its Get returns [context.Cause], and the other
// waiters continue to wait. Values may read each other. If values wait for each other in a cycle, even across
// goroutines, Get returns a [*CycleError] with the path. For this, each function must pass on the context that it
// was given.
//
// The package has no timers, no background goroutines and no expiry; see [Value.Reset].
package lazy
