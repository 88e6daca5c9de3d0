// Package server measures the cost of a session, parameters and a rate limit on every route if only some requests
// need them. It compares them as lazy properties of this library and as middleware on two common routers. A bare
// server has none of them.
//
// All servers have the same routes. GET /light needs nothing. GET /full reads the user from the session and a
// parameter from the query, and charges a limit that is never exhausted. Both answer the same small JSON. The
// middleware runs on both routes, because it is installed on the router. A program that installs middleware only
// on the routes that need it pays the cost of the 100 % cases on these routes, and nothing on the others.
//
// Every server is a process of its own. It has half of the processors. Redis, the proxy that adds latency and the
// load share the other half, so that the server limits the throughput. If it does not, the throughput also depends
// on the time of Redis and the proxy, and a server that sends more commands loses more. The processor time for
// each request is always the server's own. Every response is compared byte by byte. A script counts as a single
// command.
package server
