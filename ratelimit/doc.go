// Package ratelimit counts what subjects do and limits it.
//
// Which to use:
//
//   - In a handler: [Provide] registers a [Policy], [From] finds its [Limit], and
//     [Limit.Require] charges the request once, however often it is called.
//   - In front of handlers of any server: [Middleware], with the same policies.
//   - Outside of a request: a [Limiter] takes from one [Rule] in a [Store], or from several
//     at once.
//   - To count without a limit: a Limiter of Buckets(BucketOptions{}), with
//     [Limiter.Add] and [Limiter.Count].
//   - To decide several things in one call: [Store.Do] with a list of [Op].
//
// Packages memstore and redisstore have the stores, in memory and on Redis; packages storage
// and storetest help to write and to test others.
//
// A decision is data: an Op names a rule, a subject's key, a number of units and what
// to do. Rules are comparable values made by constructors; in doubt, take [PerMinute] or one like it:
//
//   - [GCRA] keeps an even rate and allows bursts. It takes the least room, and cannot
//     count.
//   - [Buckets] counts in time buckets. It can be asked about any interval up to its span
//     at the same cost. The interval is rounded up to whole buckets; the count is never
//     less than the truth, and more by at most what one bucket before holds. So a limit
//     over 60 s in buckets of 5 s is never exceeded in any 60 s, and may refuse for up
//     to 65 s after the units were taken.
//   - [SlidingLog] is exact over any interval, and remembers every charge for that.
//   - [FixedWindow] begins anew after each period, which allows nearly twice the limit
//     around the end of one; [Throttle] is one of a single unit.
//
// [Rule.WithLimit] is the same counter with another limit, for callers with different
// plans. A [Block] denies a key for a fixed time once it has been denied too often.
//
// docs/algorithms.md compares the algorithms and names their sources. The header fields RateLimit
// and RateLimit-Policy are those of draft-ietf-httpapi-ratelimit-headers-10.
//
// A denial is a [Result], never an error; an error means that the question was wrong or
// that the store failed. All or nothing: a denial charges nothing.
//
// The package does not wait for quota, does not queue, does not share counters between
// processes by itself (a store does), and reads a forwarding header only from proxies
// that [IPOptions] names.
package ratelimit
