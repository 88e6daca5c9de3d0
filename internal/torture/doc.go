// Package torture breaks Redis on purpose, by a random schedule, while callers take from limiters, and
// checks what the callers observed. It has only tests:
//
//   - Never over the limit: all takes of a key obey its rules. A fault that loses writes is granted
//     exactly the writes that it may have lost.
//   - No caller waits longer than its deadline, at any load.
//   - Takes fail only during a fault, and for at most a second after it. A fault of one node of a Cluster
//     fails only takes of keys on that node.
//
// LAZYREQ_TORTURE sets how long each schedule runs, such as 2m; unset, each runs for a few seconds.
// LAZYREQ_SEED repeats the faults of a run, in the same order; which caller meets which is chance.
package torture
