// Package ratelimit counts requests and other events, and limits them.
//
// A [Policy] limits requests. It is given to a server, and a handler calls its methods with the
// request: [Policy.Require] charges the request once, and returns an error if the limit denies it.
// [Middleware] limits the handlers of any server with a policy. Outside of a request, a [Limiter]
// takes from one [Rule] in a [Store], or from several; with Buckets(BucketOptions{}) it only counts.
// [Store.Do] runs several operations in one call. Packages memstore and redisstore have the stores;
// packages storage and storetest help to write and to test others.
//
// Rules are comparable values made by constructors. If in doubt, use [PerMinute] or one like it:
//
//   - [GCRA] keeps an even rate and allows bursts, as a token bucket does. It takes the least room, and
//     cannot count.
//   - [Buckets] counts any interval up to its span in time buckets, and never too little. A limit
//     over 60 s in buckets of 5 s is never exceeded in any 60 s, and may refuse for up to 65 s.
//   - [SlidingLog] is exact over any interval, and remembers every charge for that.
//   - [FixedWindow] begins anew after each period, which allows nearly twice the limit around
//     the end of one; [Throttle] is one of a single unit.
//
// docs/algorithms.md compares them and names their sources. The header fields RateLimit and
// RateLimit-Policy are those of draft-ietf-httpapi-ratelimit-headers-10.
//
// A denial is a [Result] and charges nothing. An error means that the call was wrong or that the
// store failed. The package does not wait for quota, does not share counters between
// processes by itself (a store does), and reads a forwarding header only from proxies that
// [IPOptions] names.
package ratelimit
