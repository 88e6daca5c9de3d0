// Package session keeps what a server knows about a visitor between requests.
//
// A session is loaded on the first access in a request, created by the first
// write, and saved before the response header goes out. A request that doesn't
// touch it makes no store call, and reading alone never creates a session nor
// sets a cookie.
//
//	store, err := memstore.New(memstore.Options{}) // or redisstore.New
//	m, err := session.New(session.Options{Store: store})
//	session.Provide(reg, m)
//
//	var user = session.NewField[string]("user")
//
//	s, err := session.From(ctx)   // no I/O
//	err = s.Bind("42")            // at login: whose it is, and a new secret
//	err = user.Set(ctx, "ada")    // saved when the header goes out
//	name, err := user.Get(ctx)
//	err = s.Destroy()             // at logout
//	n, err := s.RevokeOthers()    // the user's other sessions
//
// Use a Field where the type is known, and Get, Set and Delete of Session where
// names are dynamic; a Counter for what is counted, and a Flash for what is read
// once. On a plain-HTTP development host set Cookie.Insecure.
//
// Two requests that write different fields of one session keep both writes: a
// save sends only the fields that changed. Of two that write the same one, the last
// wins, or both add, or the second fails with ErrConflict, or begins again: see
// Field, Counter, Field.FailOnConflict and Field.Update. A session that was
// destroyed, has expired, or was renewed by another request is never brought back by
// a request that still holds it: its save fails with ErrGone. The client sees 409 in
// both cases.
//
// The cookie (or, with Options.Header, a header) is "locator.secret", 128 and 256
// random bits. A store is keyed by the locator and keeps only the SHA-256 digest of
// the secret, so what it holds cannot log anyone in. Neither part shows in logs,
// errors or formatted values.
//
// The package doesn't read tokens from a query or a form, doesn't encrypt
// values, doesn't protect from cross-site requests beyond SameSite, and starts
// no goroutine. What is in a Store stays there until it expires or is evicted.
package session
