// Package sessiontest gives requests in tests a session. It is a real one, in the store of the server under test, so
// that the handler can also renew, revoke and destroy it:
//
//	r := httptest.NewRequest("GET", "/me", nil)
//	sessiontest.Login(t, srv.Sessions(), r, "42")
//	srv.ServeHTTP(w, r) // as user 42
package sessiontest

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

// Login gives r a session that is bound to user.
func Login(t testing.TB, m *session.Manager, r *http.Request, user string) {
	t.Helper()
	Do(t, m, r, func(ctx context.Context) error {
		s, err := session.From(ctx)
		return errors.Join(err, s.Bind(user))
	})
}

// Do calls f with the context of a request that has the session of r, saves the session, and puts a new token into r. f
// can write fields for the handler under test, or read the fields that it has written. An error ends the test.
func Do(t testing.TB, m *session.Manager, r *http.Request, f func(ctx context.Context) error) {
	t.Helper()
	reg := reqctx.NewRegistry(reqctx.Options{})
	session.Provide(reg, m)
	c := reqctx.New(t.Context(), reg)
	c.SetRequest(r)
	h := http.Header{}
	err := f(c)
	if err == nil {
		err = errors.Join(c.Commit(http.StatusOK, h), c.Finish())
	}
	if err != nil {
		t.Fatalf("sessiontest: %v", err)
	}
	setToken(r, h)
}

// setToken puts the token of h into r, in place of an earlier one. h has only the session's fields.
func setToken(r *http.Request, h http.Header) {
	for name, values := range h {
		switch name {
		case "Cache-Control", "Vary", "Set-Cookie":
		default: // session.Options.Header
			r.Header[name] = values
		}
	}
	for _, fresh := range (&http.Response{Header: h}).Cookies() {
		others := r.Cookies()
		r.Header.Del("Cookie")
		for _, c := range others {
			if c.Name != fresh.Name {
				r.AddCookie(c)
			}
		}
		if fresh.MaxAge >= 0 {
			r.AddCookie(&http.Cookie{Name: fresh.Name, Value: fresh.Value})
		}
	}
}
