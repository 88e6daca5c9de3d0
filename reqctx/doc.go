// Package reqctx gives one request its lazy properties: a session, a user, a
// parsed body, each resolved once, on first access, by whoever reads it first.
//
// A property is declared by a [Key], usually in a package-level variable, and
// provided for a [Registry] with [Provide]. Every request has a [Context], which
// is a [context.Context]; handlers and the functions they call read properties
// with [Key.Get] from it or from any context derived from it:
//
//	var User = reqctx.NewKey[*User]("user")
//
//	reqctx.Provide(reg, User, reqctx.Prop[*User]{Resolve: loadUser})
//
//	u, err := User.Get(ctx)
//
// loadUser is an ordinary function. It may read other properties; it runs when
// the first reader comes and not at all if nobody does. A property that is
// there costs an atomic load; one that is never read costs nothing but its slot.
//
// A [Memo] is a property with an argument, and a [Batch] one that is asked for many
// arguments in one call.
//
// A request has three phases. Properties are resolved and set; then
// [Context.Commit], called by the server before the response's header goes out,
// lets those that have something to save do so; then [Context.Finish] ends the
// request's tasks and undoes what was resolved, in reverse order.
//
// The package does no routing and writes no response: that is package server.
package reqctx
