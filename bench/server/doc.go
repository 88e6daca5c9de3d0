// Package server measures what it costs to offer a session, parameters and a rate
// limit on every route, when only some requests need them: as the lazy properties of
// this library, as a chain of middleware on two common routers, and not at all.
//
// All stacks have the same routes. GET /light needs nothing; GET /full reads the
// user from the session and a parameter from the query, and is charged to a limit
// that is never exhausted. Both answer the same small JSON. The middleware runs on
// both routes, as it does where it is installed on the router: that is what the
// suite is about. A program that installs it only on the routes that need it, and
// keeps doing so, pays what the cases of 100 % say on those, and nothing on others.
//
// Every stack is a process of its own. It has one half of the processors, and Redis,
// the proxy that adds latency and the load share the other half, so that the stack is
// what limits the throughput first. Where it is not, the proxy's and Redis' time is in
// the throughput too, more of it for a stack that sends more commands; the processor
// time per request is the stack's own in every case. Every answer is compared byte by
// byte. A script counts as one command, whatever it calls.
package server
