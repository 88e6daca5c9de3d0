// Package torture checks limiters from outside. Its tests break Redis on purpose, with a random schedule, while callers
// take from limiters, and check what the callers observed:
//
//   - Never over the limit: all takes of a key obey its rules. After a fault that loses writes, only the
//     takes that it may have lost count as forgotten.
//   - A meter, which is a rule that only counts, counts each acknowledged add, unless a fault may have lost it,
//     and no others but those without a reply.
//   - No caller waits longer than its deadline, at any load.
//   - Takes fail only during a fault, and for at most a second after it. A fault of one node of a Cluster
//     fails only takes of keys on that node.
//   - Histories of a token and a lease on one Redis are linearizable.
//   - Redis answers as the memory store does, when keys expire by a clock that the test controls.
//
// A busy machine breaks the same promises. So each check has 250 ms of slack, and twice the time in which
// this process, or a Redis server without a fault, did not run; and a take that ran into its deadline is excused
// if that has happened in the second before. The report of a schedule has their number.
//
// In other schedules clients log in, read, write, renew, leave and log out, on two servers that share the Redis,
// each in a process of its own:
//
//   - A session has every acknowledged write, once, and exists until it is ended; a fault that loses writes
//     excuses those that it may have lost.
//   - A session that was ended doesn't come back.
//   - A session is its user's.
//   - A commit changes all fields or none, even if the client leaves.
//   - After a renewal the cookie of before changes nothing, and reads only until its grace is over.
//
// LAZYREQ_TORTURE sets how long each schedule runs, such as 2m, and prints a summary by fault at the end; unset,
// each runs for a few seconds.
// LAZYREQ_SEED repeats the faults of a run, in the same order; which caller meets which is chance.
//
// Tests of other packages use [Run], which has several processes take from one subject and log when each take was sent
// and when its reply was received, and [Check], which reports whether the limiter kept its rule. All processes, and the
// server that decides, are on one machine and read one clock: the decision was made between the two times. Check
// assumes nothing else, so it has no false alarms. It finds more faults if replies come sooner. The clock is the
// system's, which Redis uses, too. If it is set meanwhile, both the limiter and Check are wrong.
package torture
