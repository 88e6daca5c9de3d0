// Package lazyreq has no code. The library is in the packages below it. They are for HTTP servers whose
// requests carry lazy properties: a session, parameters, a rate limit and the application's own values.
// Each property is resolved once, when a handler first reads it, so a request pays only for the
// properties that it uses.
//
// Begin with [github.com/lazyreq/lazyreq/server]. Each of the other packages also works alone:
//
//   - [github.com/lazyreq/lazyreq/lazy]: values that are computed once, tasks, scopes
//   - [github.com/lazyreq/lazyreq/reqctx]: the lazy properties of a request
//   - [github.com/lazyreq/lazyreq/params]: query, path, form and JSON, parsed when they are first used
//   - [github.com/lazyreq/lazyreq/session]: sessions that are loaded when they are first used
//   - [github.com/lazyreq/lazyreq/ratelimit]: counters and limits
//   - [github.com/lazyreq/lazyreq/coord]: tokens that can be used only once, and leases for one worker at a time
//   - [github.com/lazyreq/lazyreq/server]: HTTP servers with all of these
package lazyreq
