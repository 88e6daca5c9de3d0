// Package redisstore keeps the counters of package ratelimit in Redis, so that several
// processes share them.
//
// [New] makes a [Store] over a client of go-redis: single, Sentinel or Cluster, Redis
// 6.2 or later. It answers as the memory store does, with these differences:
//
//   - The time is the Redis server's.
//   - A group of ops is one call of one script, which is what makes it atomic. Calls of
//     one moment, of all stores on one client, share a round trip.
//   - Every key has a TTL, as long as the counter can matter. Only charges and refunds write it, so
//     a counter that is not charged is forgotten, and a TTL that was lost is back with the next
//     charge. That of buckets is the rule's Expiry, at least Span + Interval, and begins anew
//     with the first charge in a bucket.
//   - A receipt is known by its counter and the time of its charge: a charge, a Reset and a
//     charge of one key within one microsecond have the same receipt.
//   - A key that holds something else is left as it is. A call that asks for it gets
//     [ErrKeyType]; other calls that share the script don't notice.
//   - Takes of one key that are made at the same moment, by one rule and of the same n, are one
//     entry of a call: the first so many pass, in the order in which they came, and each gets the
//     result that it would have got after those before it. Takes of different n may change places.
//     Of a GCRA only the last one can be refunded. If together they would leave what can be
//     counted, each is [ratelimit.ErrOverflow]. Takes by a rule with a Block, and those of a log,
//     are entries each.
//
// The counter of a rule on a subject's key has the name
//
//	<prefix>{<key>}:<algorithm>:[<rule's name>:]<per>[/<interval>[/<span>]]
//
// such as ratelimit:{login:192.0.2.1}:buckets:60s. The braces put all
// counters of a subject into one slot of a Cluster. docs/redis.md has the types, the memory
// that they take, and the ACL that a user needs.
//
// The package does not decide what happens without Redis: a failure is an error that
// wraps [ratelimit.ErrStore], after [Options.Timeout] at the latest. Nothing is sent
// twice, so a lost reply can leave units charged that no caller knows of, never the
// other way round. It does not bound the number of subjects: that is Redis' maxmemory.
package redisstore
