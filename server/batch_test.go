package server_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// TestBatchWithZeroValues checks over HTTP that a batch with lazy.OrElse returns 0 for an argument without a value, and
// that an error of its function stays an error.
func TestBatchWithZeroValues(t *testing.T) {
	unread := reqctx.NewBatch[string, int]("unread")
	srv, l := newServer(t, server.Options{})
	count := func(_ context.Context, users []string) (map[string]int, error) {
		switch users[0] {
		case "ada":
			return map[string]int{"ada": 3}, nil
		case "down":
			return nil, errors.New("the database is down")
		}
		return nil, nil
	}
	reqctx.ProvideBatch(srv.Registry(), unread, lazy.OrElse(count, 0))
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		counts, err := unread.GetAll(req, req.URL.Query()["user"])
		if err != nil {
			return err
		}
		return server.WriteJSON(w, http.StatusOK, counts)
	})
	at, c := listenItself(t, srv)
	for query, want := range map[string]string{"user=ada&user=grace": "[3,0]", "user=grace": "[0]"} {
		res, err := request(t, c, "GET", at+"/?"+query)
		require.NoError(t, err)
		require.JSONEq(t, want, res.body)
	}
	res, err := request(t, c, "GET", at+"/?user=down")
	require.NoError(t, err)
	require.Equal(t, 500, res.StatusCode)
	require.Contains(t, l.only(t)["error"], "the database is down")
}
