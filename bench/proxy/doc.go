// Package proxy measures what a reverse proxy with a limit costs: the processor time of
// its process for each request. Contenders are ratelimit-proxy, built from this tree and
// started by its flags, a bare httputil.ReverseProxy that is connected alike, nginx with
// limit_req, and Caddy with caddy-ratelimit.
//
// Each has one processor to itself, and as much to do as it can: 64 connections, of a
// client each, that ask again as soon as they are answered. The load and the upstream,
// which is one thread that answers each request with the same 1 KB and counts them, share
// the other processors, with Redis. How much of its processor a contender was busy is
// measured, too: where it is less than 95 %, something else was the limit.
//
// There are four cases. In "none" nothing is limited. In "limit" every client, known by
// its Authorization header, may ask 10,000 times a second, which none comes near; "redis"
// is the same with the counters in Redis. In "denied" a client may ask five times a
// minute, and every round has new clients: all answers from the sixth on are 429. Before a
// contender with a limit is measured, it has to deny the sixth request in another process.
//
// A run ends with an error if one answer is another than it has to be, by status, length or
// content, or if after a round the upstream, or a proxy that counts, has counted otherwise
// than the load.
//
// Nobody logs requests. All but the bare proxy and Caddy do more than is asked for: ours
// and nginx count their requests, and ours tells its clients what they have left.
package proxy
