// Package torture checks limiters from outside.
//
// Tests of other packages use [Run], which makes several processes take from one subject and log when each take
// was sent and when its reply was received, and [Check], which reports whether the limiter kept its rule. All
// processes and the server that decides read the clock of the same machine, so the decision was made between the
// two times. Check assumes nothing else, so it has no false alarms. It finds more faults if replies come sooner.
// If the clock is set during a run, both the limiter and Check are wrong.
//
// The package's own tests break Redis with a random schedule of faults, while callers take from limiters. They check:
//
//   - All takes of a key obey its rules. After a fault that loses writes, only the takes that it may have lost count as
//     forgotten.
//   - A meter, which is a rule that only counts, counts each acknowledged add unless a fault may have lost it. It counts
//     no others, except those without a reply.
//   - No caller waits longer than its deadline, at any load.
//   - Takes fail only during a fault, and for at most a second after it. A fault of one node of a Cluster fails only
//     takes for keys on that node.
//   - Histories of a token and a lease on one Redis are linearizable.
//   - Redis answers like a model when keys expire by a clock that the test controls.
//
// A busy machine breaks the same promises. So each check allows 250 ms more, and twice the time in which this
// process, or a Redis server without a fault, did not run. If a process did not run, takes that miss their
// deadline within the next second do not count as violations.
//
// In other schedules, clients log in, read, write, renew, leave and log out, on two servers that share the Redis:
//
//   - A session has every acknowledged write, once, and exists until it is ended. A fault that loses writes excuses only
//     those that it may have lost.
//   - A session that was ended does not come back.
//   - A session belongs to its user.
//   - A commit changes all fields or none, even if the client leaves.
//   - After a renewal, the old cookie changes nothing, and reads only until its grace period is over.
//
// LAZYREQ_TORTURE sets how long each schedule runs, such as 2m, and prints a summary by fault at the end. Without it,
// each schedule runs for a few seconds. LAZYREQ_SEED repeats the faults of a run in the same order. The callers that
// meet a fault are random.
package torture
