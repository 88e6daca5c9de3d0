// Package counter compares counters in time buckets: redback's rate limit on Node, and Buckets of package
// ratelimit. Both use one redis-server, with 50 concurrent calls. On both sides, a bucket is 5 s long and the span
// is 600 s. These are the defaults of both.
package counter
