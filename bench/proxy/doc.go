// Package proxy measures what a reverse proxy with a limit costs: the processor time of
// its process for each request. Contenders are ratelimit-proxy, built from this tree and
// started by its flags, a bare httputil.ReverseProxy that is connected alike, nginx with
// limit_req, and Caddy with caddy-ratelimit.
//
// Each contender has one processor to itself and is saturated: 64 clients with a connection
// each send the next request as soon as they have a response. The load, Redis and the upstream,
// a single thread that answers and counts requests for the same 1 KB, share the other
// processors. The contender's utilization is measured, too: below 95 %, the bottleneck was
// elsewhere.
//
// There are four cases. In "none", nothing is limited. In "limit", every client, identified by
// its Authorization header, may send 10,000 requests a second, which no client reaches; "redis"
// is the same with the counters in Redis. In "denied", a client may send five requests a
// minute, and every round has new clients: from the sixth on, all responses are 429. Before a
// contender with a limit is measured, another process of it has to deny a sixth request.
//
// A run ends with an error if a response has a wrong status, length or content, or if the counts
// of the load, the upstream and the proxy differ after a round.
//
// No contender logs requests. ratelimit-proxy and nginx also count requests, and
// ratelimit-proxy sends quota headers.
package proxy
