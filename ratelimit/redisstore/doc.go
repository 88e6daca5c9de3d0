// Package redisstore keeps the counters of package ratelimit in Redis, so that several processes share them.
//
// [New] makes a [Store] over a go-redis client: single, Sentinel or Cluster, Redis 6.2 or later. It returns the same results
// as the memory store, with these differences:
//
//   - The time is the Redis server's. A rule of the calendar also needs this machine's clock, to compute the ends of windows.
//     If the clocks differ by more than a window, it returns [ratelimit.ErrStore] and charges nothing.
//   - A group of ops is one script call, which makes it atomic. Concurrent calls of all stores on the same client share
//     round trips.
//   - Every key has a TTL. Only charges and refunds set it, so a counter that is not charged is forgotten, and a later
//     charge restores a lost TTL. The TTL of buckets is the rule's Expiry, but at least Span + Interval. It starts again
//     with the first charge in a bucket.
//   - A receipt consists of the counter and the time of the charge. After a Reset within one microsecond, an earlier
//     receipt can refund the next charge of the key.
//   - A key that holds another value stays unchanged. A call for it returns [ErrKeyType]. Other calls that share the script
//     do not fail.
//   - Concurrent takes from the same key with the same rule and n are sent as a single entry of a call. The first takes
//     pass, in their order, and each gets its own result. Takes with different n may change places. With a GCRA, only the
//     last take can be refunded. If the counter cannot hold all units together, each take returns
//     [ratelimit.ErrOverflow]. Takes with a Block or a log are always separate entries.
//
// The Redis key of a rule's counter for a subject's key is
//
//	<prefix>{<key>}:<algorithm>:[<rule's name>:]<per>[/<interval>[/<span>]]
//	<prefix>{<key>}:calendar:[<rule's name>:]<period>/<location>
//
// such as ratelimit:{login:192.0.2.1}:buckets:60s. The braces put all counters of a subject into the same slot of a Cluster.
// docs/redis.md describes the types and their memory, and the ACL that a user needs.
//
// If Redis fails, calls return an error that wraps [ratelimit.ErrStore], after [Options.Timeout] at the latest. The store
// sends nothing twice, so a call whose reply was lost may have charged units. The store does not limit the number of
// subjects; Redis' maxmemory does.
package redisstore
