// Package lazy computes values once, on first use, and lets straight-line code wait for
// them.
//
//   - [New] makes a stand-alone [Value], such as a package-level cache or a connection. It
//     has no owner: its computation goes on as long as a caller waits for it.
//   - [In] makes a Value that belongs to a [Scope] and is computed on first use.
//   - [Go] makes one that is computed at once: a task whose result is read later.
//   - [All] waits for several values in parallel.
//   - [NewBatch] and [BatchIn] make a [Batch], which loads the values of many keys with one
//     call.
//   - [Flight] is the engine of all of these, for packages that keep values in a form of
//     their own, as reqctx does.
//
// [Value.Get] returns a value. The first caller computes it and the others share the
// outcome; a value that is there costs one atomic load. A waiter whose own context ends
// leaves with [context.Cause], and the others stay. Values may need each other. A cycle,
// also across goroutines, is a [*CycleError] with its path, and not a deadlock, as long as
// each function passes on the context that it was given.
//
// The package has no timers, no background goroutines and no expiry: to compute a stale
// value again, call [Value.Reset] first.
package lazy
