// Package session keeps data about a visitor between requests.
//
// A session is loaded on the first access in a request, created by the first write, and saved before the response
// header goes out. A request that does not use its session makes no store call. Reading a session never creates one
// and never sets a cookie.
//
//	store, err := memstore.New(memstore.Options{}) // or redisstore.New
//	m, err := session.New(store, session.Options{})
//	session.Provide(reg, m)
//
//	var name = session.NewField[string]("name")
//
//	s, err := session.From(ctx)           // no I/O
//	err = s.Bind("42")                    // at login: the user, and a new secret
//	err = name.Set(ctx, "Ada")            // saved when the header goes out
//	n, err := name.Get(ctx)
//	user, err := session.RequireUser(ctx) // "42", or an error that is a 401
//	err = s.Destroy()                     // at logout
//	n, err = s.RevokeOthers()             // ends the user's other sessions
//
// Use a [Field] for a value of known type, Get, Set and Delete of [Session] for dynamic names, a [Counter] to count,
// and a [Flash] for a value that is read once. On a development host without TLS, set Cookie.Insecure. Package
// sessiontest gives requests in tests a session.
//
// Two requests that write different fields of one session keep both writes, because a save sends only the changed
// fields. If both write the same field, the last write wins, or both add, or the second fails with [ErrConflict] or
// is retried: see [Field], [Counter], [Field.FailOnConflict] and [Field.Update]. A request never brings back a
// session that was destroyed, has expired or was renewed while the request ran. Its save fails with [ErrGone]. After
// ErrConflict or ErrGone, the client gets a 409.
//
// The cookie (or, with Options.Header, a header) is "locator.secret", 128 and 256 random bits. A store is keyed by
// the locator and keeps only the SHA-256 of the secret, so its content cannot be used to log in. Neither part shows
// in logs, errors or formatted values.
//
// The package doesn't read tokens from a query or a form, doesn't encrypt values, doesn't prevent cross-site
// requests beyond SameSite, and starts no goroutine.
package session
