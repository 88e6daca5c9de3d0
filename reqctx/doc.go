// Package reqctx gives a request lazy properties, such as a session, a user or a parsed body. Each property is
// resolved once, when it is first read.
//
// A property is declared by a [Key], usually in a package-level variable, and provided for a [Registry] with
// [Provide]. Every request has a [Context], which the server makes with [New]. It is a [context.Context]. Handlers,
// and functions that they call, read properties with [Key.Get] from this context or from any context derived from it:
//
//	var User = reqctx.NewKey[*UserRecord]("user")
//
//	reqctx.Provide(reg, User, reqctx.Prop[*UserRecord]{Resolve: loadUser})
//
//	u, err := User.Get(ctx)
//
// loadUser is an ordinary function, which may read other properties. It runs when the property is first read, and
// does not run if no code reads the property. Reading a resolved property costs an atomic load. A property that is
// never read costs only its slot in the Context.
//
// [Resolve] resolves several properties in parallel. [Key.Start] begins to resolve a property early. A [Batch] is
// a property with an argument, which loads a list of arguments with one call. [Preset] gives a request the value
// of a property in tests.
//
// A request has three phases. First, properties are resolved and set. Before the response's header is sent, the
// server calls [Host.Commit], which saves the properties that have changed. After the response, it calls
// [Host.Finish], which ends the request's tasks and calls the Close functions in reverse order.
//
// The package does no routing and writes no responses. Package server does.
package reqctx
