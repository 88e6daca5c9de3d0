// Package redisstore keeps the counters of package ratelimit in Redis, so that several processes share them.
//
// [New] makes a [Store] over a go-redis client: single, Sentinel or Cluster, Redis 6.2 or later. It returns the same results
// as the memory store, with these differences:
//
//   - The time is the Redis server's.
//   - A group of ops is one script call, which makes it atomic. Concurrent calls of all stores on one client share round
//     trips.
//   - Every key has a TTL. Only charges and refunds set it. So if a counter is not charged, Redis forgets it, and
//     the next charge restores a lost TTL. The TTL of buckets is the rule's Expiry, at least Span + Interval, and
//     starts again with the first charge in a bucket.
//   - A receipt consists of the counter and the time of the charge. After a Reset within one microsecond, an earlier
//     receipt can refund the next charge of the key.
//   - A key that holds another value stays unchanged. A call for it returns [ErrKeyType]; other calls that share the script
//     do not fail.
//   - Concurrent takes of the same key with the same rule and n share an entry of a call. They are decided in
//     their order, and each gets its own result. Takes of different n may be reordered. With a GCRA, only the
//     last take can be refunded. If the counter cannot hold all units together, each take returns
//     [ratelimit.ErrOverflow]. Takes by a rule with a Block, and takes by a log, have separate entries.
//
// The counter of a rule on a subject's key has the name
//
//	<prefix>{<key>}:<algorithm>:[<rule's name>:]<per>[/<interval>[/<span>]]
//
// such as ratelimit:{login:192.0.2.1}:buckets:60s. The braces put all counters of a subject into one slot of a Cluster.
// docs/redis.md describes the types, their memory, and the ACL of a user.
//
// If Redis fails, a call returns an error that wraps [ratelimit.ErrStore], after [Options.Timeout] at the latest.
// The store sends nothing twice. If a reply is lost, units may be charged although the caller got an error. The
// store does not limit the number of subjects. Set maxmemory in Redis.
package redisstore
