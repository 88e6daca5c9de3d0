package server_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// A committed property is visible outside; its cookie must reach the client
// even if another property then fails. What the handler has set is not sent.
func TestFailedCommitKeepsTheCookiesOfThoseThatSucceeded(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	saved, failing := reqctx.NewKey[int]("saved"), reqctx.NewKey[int]("failing")
	resolve := func(context.Context) (int, error) { return 1, nil }
	reqctx.Provide(srv.Registry(), saved, reqctx.Prop[int]{
		Resolve: resolve,
		Commit:  func(_ context.Context, _ int, h http.Header) error { h.Add("Set-Cookie", "saved=1"); return nil },
	})
	reqctx.Provide(srv.Registry(), failing, reqctx.Prop[int]{
		Resolve: resolve,
		Commit:  func(context.Context, int, http.Header) error { return errors.New("down") },
	})
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		http.SetCookie(w, &http.Cookie{Name: "handler", Value: "1"})
		if _, err := saved.Get(req.Context()); err != nil {
			return err
		}
		_, err := failing.Get(req.Context())
		return err
	})
	res := ask(srv, "GET", "/")
	require.Equal(t, http.StatusInternalServerError, res.StatusCode)
	require.Equal(t, []string{"saved=1"}, res.Header.Values("Set-Cookie"))
}
