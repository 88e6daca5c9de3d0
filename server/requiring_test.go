package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// book is the id in the path, which only the router's copy of the request has.
var book = reqctx.NewKey[string]("book")

func provideBook(srv *server.Server) {
	reqctx.Provide(srv.Registry(), book, reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		if id := reqctx.From(ctx).Request().PathValue("id"); id != "0" {
			return id, nil
		}
		return "", server.Errorf(404, "No such book.")
	}})
}

func TestRequiringInAWrappedRouter(t *testing.T) {
	srv, l := newServer(t, plainCookies)
	provideBook(srv)
	mux := http.NewServeMux()
	read := func(w http.ResponseWriter, r *http.Request) {
		id, err := book.Get(r.Context())
		require.NoError(t, err)
		_, _ = io.WriteString(w, id)
	}
	mux.Handle("GET /books/{id}", server.Requiring(session.Loaded, book)(http.HandlerFunc(read)))
	mux.Handle("GET /mine/{id}", server.Requiring(session.LoggedIn)(server.Requiring(book)(http.HandlerFunc(read))))
	h := srv.Wrap(router(mux))
	res := ask(h, "GET", "/books/7")
	require.Equal(t, "7", res.body)
	require.Equal(t, []string{"Cookie"}, res.Header.Values("Vary"))
	requireProblem(t, 404, `{"status":404,"title":"Not Found","detail":"No such book."}`, ask(h, "GET", "/books/0"))
	require.Equal(t, 401, ask(h, "GET", "/mine/7").StatusCode)
	require.Equal(t, "404 page not found\n", ask(h, "GET", "/nowhere").body, "the router's own")
	require.Empty(t, l.at(""))
}

func TestRequiringWithoutAServer(t *testing.T) {
	rec := httptest.NewRecorder()
	server.Requiring(session.Loaded)(plain).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	requireProblem(t, 500, internalError, answer{rec.Result(), rec.Body.String()})
}

func TestRequiringAnUnknownProperty(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	requireProblem(t, 500, internalError, ask(srv.Wrap(server.Requiring(book)(plain)), "GET", "/"))
	require.Contains(t, l.only(t)["error"], reqctx.ErrNoProperty.Error())
}
