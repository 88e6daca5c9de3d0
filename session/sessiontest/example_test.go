package sessiontest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/sessiontest"
)

func newServer() *server.Server {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	srv.HandleFunc("GET /me", func(w http.ResponseWriter, req *server.Request) error {
		user, err := session.RequireUser(req)
		if err != nil {
			return err
		}
		_, err = w.Write([]byte("user " + user))
		return err
	})
	return srv
}

func ExampleLogin() {
	_ = func(t *testing.T) { // the body of a test
		srv := newServer()
		r := httptest.NewRequest("GET", "/me", nil)
		sessiontest.Login(t, srv.Sessions(), r, "42")
		sessiontest.Do(t, srv.Sessions(), r, func(ctx context.Context) error { return name.Set(ctx, "Ada") })
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, r)
		if w.Body.String() != "user 42" {
			t.Errorf("got %q", w.Body)
		}
	}
}
