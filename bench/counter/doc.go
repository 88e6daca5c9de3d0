// Package counter compares counters in time buckets: redback's rate limit, on Node,
// with our Buckets, both on one redis-server and with 50 calls in flight. Buckets are of
// 5 s and the span is 600 s on both sides, the default of both.
package counter
