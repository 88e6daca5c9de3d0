// Package memory compares limiters that keep their counters in the memory of the process. The keys of a case are a single
// key, 16 thousand keys, a million keys, or new keys all the time. Each take has a copy of its key, as a request
// would have.
//
// No take of the timed loop reaches the limit. In each round, every limiter also gets twice as many takes as a small limit
// allows, and must admit exactly the limit.
package memory
