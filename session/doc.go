// Package session keeps data about a visitor between requests.
//
// A session is loaded when a request first uses it, created by the first write, and saved before the response's
// header is sent. A request that does not use its session makes no store call. Reading a session never creates
// one and never sets a cookie.
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
// Use a [Field] for a value of known type, a [Counter] to count, and a [Flash] for a value that is read only
// once. If names are computed at run time, use Get, Set and Delete of [Session]. On a development host without
// TLS, set Cookie.Insecure. Package sessiontest gives requests in tests a session.
//
// If two requests write different fields of a session, both writes are kept, because a save sends only the
// changed fields. If they write the same field, the last write of a [Field] wins, and a [Counter] adds both
// numbers. With [Field.FailOnConflict], the second write fails with [ErrConflict]. [Field.Update] calls its function
// again. A request never brings back a session that was destroyed, has expired or was renewed while the request ran.
// Its save fails with [ErrGone]. After ErrConflict or ErrGone, the client gets a 409.
//
// The cookie (or, with Options.Header, a header) is "locator.secret", 128 and 256 random bits. A store is keyed
// by the locator and keeps only the SHA-256 of the secret, so its content cannot be used to log in. Neither part
// appears in logs, errors or formatted values.
//
// The package doesn't read tokens from a query or a form, doesn't encrypt values, doesn't prevent cross-site
// requests beyond SameSite, and starts no goroutine.
package session
