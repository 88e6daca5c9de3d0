// Package proxy measures the cost of a reverse proxy with a limit, which is the processor time of its process for
// each request. The contenders are ratelimit-proxy, which is built from this tree and started with flags, a bare
// httputil.ReverseProxy with the same connections, nginx with limit_req, and Caddy with caddy-ratelimit.
//
// Each contender has a processor of its own and is saturated. 64 clients have a connection each, and send the next
// request when they have received a response. The load, Redis and the upstream share the other processors. The
// upstream is a single thread that always answers the same 1 KB and counts the requests. The suite also measures
// the contender's utilization. If it is below 95 %, another process was the bottleneck.
//
// There are four cases. In "none", nothing is limited. In "limit", every client may send 10,000 requests a second,
// which no client reaches. Clients are identified by their Authorization header. "redis" is the same with the
// counters in Redis. In "denied", a client may send five requests a minute, and every round has new clients, so
// all responses after the fifth are a 429. Before a contender with a limit is measured, another process of it must
// deny a sixth request.
//
// A run ends with an error if a response has a wrong status, length or content. It also does if the load, the
// upstream and the proxy have counted different numbers of requests in a round.
//
// No contender logs requests. ratelimit-proxy and nginx also count requests, and ratelimit-proxy sends quota
// headers.
package proxy
