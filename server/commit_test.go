package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
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
		Commit:  func(_ context.Context, _, _ int, h http.Header) error { h.Add("Set-Cookie", "saved=1"); return nil },
	})
	reqctx.Provide(srv.Registry(), failing, reqctx.Prop[int]{
		Resolve: resolve,
		Commit:  func(context.Context, int, int, http.Header) error { return errors.New("down") },
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

// A Commit function gets the status of the response that goes out if it does not fail.
func TestCommitGetsTheStatus(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	var got []int
	outcome := reqctx.NewKey[int]("outcome")
	reqctx.Provide(srv.Registry(), outcome, reqctx.Prop[int]{
		Resolve: func(context.Context) (int, error) { return 1, nil },
		Commit:  func(_ context.Context, _, status int, _ http.Header) error { got = append(got, status); return nil },
	})
	srv.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := outcome.Get(r.Context())
			require.NoError(t, err)
			if r.URL.Query().Has("wrapped") {
				w = passer{w}
			}
			next.ServeHTTP(w, r)
		})
	})
	status := func(codes ...int) server.HandlerFunc {
		return func(w http.ResponseWriter, _ *server.Request) error {
			for _, code := range codes {
				w.WriteHeader(code)
			}
			return nil
		}
	}
	for path, h := range map[string]server.HandlerFunc{
		"/nothing": status(),
		"/written": func(w http.ResponseWriter, _ *server.Request) error { _, err := w.Write([]byte("x")); return err },
		"/created": status(http.StatusCreated),
		"/early":   status(http.StatusEarlyHints, http.StatusNoContent),
		"/twice":   status(http.StatusAccepted, http.StatusTeapot),
		"/error":   func(http.ResponseWriter, *server.Request) error { return server.Errorf(http.StatusConflict, "no") },
		"/fault":   func(http.ResponseWriter, *server.Request) error { return errors.New("no") },
		"/hijack": func(w http.ResponseWriter, _ *server.Request) error {
			_, _, err := http.NewResponseController(w).Hijack()
			return err
		},
		"/panic": func(http.ResponseWriter, *server.Request) error { panic("no") },
	} {
		srv.HandleFunc("GET "+path, h)
	}
	for path, want := range map[string][]int{
		"/nothing": {200}, "/written": {200}, "/created": {201}, "/early": {204}, "/twice": {202},
		"/error": {409}, "/fault": {500}, "/hijack": {101}, "/panic": nil, "/unknown": {404},
	} {
		for _, target := range []string{path, path + "?wrapped"} {
			got = nil
			srv.ServeHTTP(hijackable{httptest.NewRecorder()}, httptest.NewRequest("GET", target, nil))
			require.Equal(t, want, got, target)
		}
	}
}
