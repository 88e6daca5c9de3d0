// Package reqctx gives one request its lazy properties: a session, a user, a parsed body,
// each resolved once, when it is first read.
//
// A property is declared by a [Key], usually in a package-level variable, and provided
// for a [Registry] with [Provide]. Every request has a [Context], which the server makes with
// [New]. It is a [context.Context]: handlers and the functions they call read properties with
// [Key.Get] from it or from any context derived from it:
//
//	var User = reqctx.NewKey[*UserRecord]("user")
//
//	reqctx.Provide(reg, User, reqctx.Prop[*UserRecord]{Resolve: loadUser})
//
//	u, err := User.Get(ctx)
//
// loadUser is an ordinary function, which may read other properties. It runs when the
// property is first read, and never if it is not read. Reading a resolved property costs
// an atomic load; a property that is never read costs its slot.
//
// Properties read one after another take the sum of their latencies. [Resolve]
// resolves several in parallel, and [Key.Start] begins to resolve one that is going to be read.
//
// A [Batch] is a property with an argument. It loads a list of arguments with one call: see
// [Batch.GetAll]. A test gives a request the value of a property with [Preset].
//
// A request has three phases. Properties are resolved and set; then [Host.Commit],
// called by the server before the response's header goes out, saves those that have
// changed; then [Host.Finish] ends the request's tasks and calls the Close functions,
// in reverse order.
//
// The package does no routing and writes no response: that is package server.
package reqctx
