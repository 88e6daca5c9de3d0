// Package reqctx gives one request its lazy properties: a session, a user, a parsed body. Each is resolved once, when it
// is first read.
//
// A property is declared by a [Key], usually in a package-level variable, and provided for a [Registry] with [Provide].
// Every request has a [Context], which the server makes with [New]. It is a [context.Context]: handlers and the
// functions they call read properties with [Key.Get] from it or from any context derived from it:
//
//	var User = reqctx.NewKey[*UserRecord]("user")
//
//	reqctx.Provide(reg, User, reqctx.Prop[*UserRecord]{Resolve: loadUser})
//
//	u, err := User.Get(ctx)
//
// loadUser is an ordinary function, which may read other properties. It runs when the property is first read, and never
// if no code reads it. Reading a resolved property costs an atomic load. A property that is never read costs its slot.
//
// [Resolve] resolves several properties in parallel, and [Key.Start] begins to resolve one early. A [Batch] is a
// property with an argument, which loads a list of arguments with one call. [Preset] gives a request the value of a
// property in tests.
//
// A request has three phases. Properties are resolved and set. Then [Host.Commit], called by the server before the
// response's header goes out, saves those that have changed. Then [Host.Finish] ends the request's tasks and calls the
// Close functions, in reverse order.
//
// The package does no routing and writes no response: that is package server.
package reqctx
