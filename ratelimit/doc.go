// Package ratelimit counts requests and other events, and limits them.
//
// A [Policy] limits requests. The program gives the policy to a server, and a handler calls its methods with the
// request. [Policy.Require] charges the request once, and returns an error if the limit denies the request.
// [Middleware] limits the handlers of any server. Outside of a request, a [Limiter] takes units from one or more
// [Rule]s in a [Store]. With Buckets(BucketOptions{}), it only counts. Packages memstore and redisstore have the
// stores. Package storage helps to write other stores, and package storetest tests them.
//
// Rules are comparable values made by constructors. If you are not sure, use [PerMinute] or a similar
// constructor:
//
//   - [GCRA] keeps an even rate and allows bursts, like a token bucket. It needs the least memory, but cannot
//     count.
//   - [Buckets] counts any interval up to its span in time buckets, and its counts are never too low. A limit over 60 s
//     in buckets of 5 s is never exceeded in any 60 s, but may deny for up to 65 s.
//   - [SlidingLog] is exact over any interval, and stores every charge.
//   - [FixedWindow] begins again after each period. Nearly twice the limit can pass around the end of a period.
//     [Throttle] is a window with a single unit.
//
// docs/algorithms.md compares these rules and names their sources. The header fields RateLimit and
// RateLimit-Policy follow draft-ietf-httpapi-ratelimit-headers-10.
//
// A denial is a [Result] and charges nothing. An error means that the call was wrong or that the store failed. The
// package does not wait for quota. It reads a forwarding header only from proxies that [IPOptions] names.
package ratelimit
