// Package redisstore keeps the counters of package ratelimit in Redis, so that several
// processes share them.
//
// [New] makes a [Store] over a client of go-redis: single, Sentinel or Cluster, Redis
// 6.2 or later. It answers as the memory store does, with these differences:
//
//   - The time is the Redis server's.
//   - A group of ops is one call of one script, which is what makes it atomic. Calls of
//     one moment, of all stores on one client, share a round trip.
//   - A counter is a Redis string of 7 bytes × (span/interval + 5). It has a TTL of the
//     rule's Expiry, at least Span + Interval, which begins anew with each charge, but
//     not with a question: what nobody charges is forgotten.
//
// The counter of a rule on a subject's key has the name
//
//	<prefix>{<key>}:<algorithm>:[<rule's name>:]<per>/<interval>/<span>
//
// such as ratelimit:{login:192.0.2.1}:buckets:1m0s/5s/10m0s. The braces put all
// counters of a subject into one slot of a Cluster.
//
// The package does not decide what happens without Redis: a failure is an error that
// wraps [ratelimit.ErrStore], after [Options.Timeout] at the latest. Nothing is sent
// twice, so a lost reply can leave units charged that nobody was told of, never the
// other way round. It does not bound the number of subjects: that is Redis' maxmemory.
package redisstore
