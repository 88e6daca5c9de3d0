// Package lazy computes values once, on first use, and lets straight-line code
// wait for them.
//
// Which one to use:
//
//   - [New] makes a stand-alone [Value]: a package-level cache, a connection
//     that is dialled on first use. It has no owner, so its computation goes on
//     as long as a caller waits for it.
//   - [In] makes a Value that belongs to a [Scope] and is computed on first use.
//   - [Go] makes one that is computed at once: a task whose result is read later.
//   - [All] and [Any] wait for several of them in parallel.
//   - [NewMemo] makes a function that is computed once for each argument.
//   - [NewBatch] answers Gets that are made at the same moment with one call.
//   - [Flight] is the machinery under Value, for packages that keep their
//     values in a form of their own, as reqctx does.
//
// [Value.Get] returns a value. The first caller computes it and the others share
// the outcome; a value that is there costs one atomic load. A waiter whose own
// context ends leaves with [context.Cause], and the others stay. Values may need each other: a cycle is a [*CycleError] that names its
// path, also across goroutines, and not a deadlock, as long as a function
// passes on the context that it was given.
//
// The package has no timers, no background goroutines and no expiry: to fetch a
// stale value again, call [Value.Reset] first.
package lazy
