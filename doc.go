// Package lazyreq is a runtime for HTTP servers in which a request carries lazy
// properties: its session, its parameters, its rate limit and the application's
// own. Each resolves once, on first access, in straight-line code, so that a
// server needs no middleware chain and a request pays only for what its handler
// reads.
//
// This package has no code. Begin with [github.com/lazyreq/lazyreq/server]; the
// parts work alone, too:
//
//   - [github.com/lazyreq/lazyreq/lazy]: values computed once, tasks, scopes
//   - [github.com/lazyreq/lazyreq/reqctx]: one request's lazy properties
//   - [github.com/lazyreq/lazyreq/params]: query, path, form and JSON, parsed on first use
//   - [github.com/lazyreq/lazyreq/session]: loaded on first use, saved before the header
//   - [github.com/lazyreq/lazyreq/ratelimit]: counters and limits
//   - [github.com/lazyreq/lazyreq/coord]: what is done once, and by one worker at a time
//   - [github.com/lazyreq/lazyreq/server]: HTTP servers, and the gate that responses pass
package lazyreq
