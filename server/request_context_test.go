package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

var _ context.Context = (*server.Request)(nil)

func TestRequestIsAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		calls := provideBoth(srv)
		errGone := errors.New("gone")
		outer, cancel := context.WithCancelCause(t.Context())
		type key struct{}
		srv.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "middleware's")))
			})
		})
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
			for range 2 {
				v, err := account.Get(req)
				require.NoError(t, err)
				require.Equal(t, "ada's", v)
			}
			require.Equal(t, int32(1), calls.Load())
			require.Same(t, reqctx.From(req.Context()), reqctx.From(req))
			require.Equal(t, "middleware's", req.Value(key{}))

			ctx, stop := context.WithTimeout(req, time.Minute)
			defer stop()
			v, err := flags.Get(ctx)
			require.NoError(t, err)
			require.Equal(t, "new", v)
			deadline, ok := req.Deadline()
			require.True(t, ok)
			require.WithinDuration(t, time.Now(), deadline, time.Hour)

			called := make(chan struct{})
			context.AfterFunc(req, func() { close(called) })
			require.NoError(t, req.Err())
			cancel(errGone)
			<-called
			<-ctx.Done()
			<-req.Done()
			require.ErrorIs(t, req.Err(), context.Canceled)
			require.Equal(t, errGone, context.Cause(req))

			req.Request = req.WithContext(context.WithValue(req, key{}, "handler's"))
			require.Equal(t, "handler's", req.Context().Value(key{}))
			require.Equal(t, "middleware's", req.Value(key{}), "a context that contains itself would overflow the stack")
			return nil
		})
		bounded, stop := context.WithTimeout(outer, time.Hour)
		defer stop()
		srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(bounded, "GET", "/", nil))
	})
}

// hitting returns a request whose property account is resolved.
func hitting(tb testing.TB, hit func(req *server.Request)) {
	srv, _ := newServer(tb, server.Options{})
	provideBoth(srv)
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		require.NoError(tb, account.Require(req))
		hit(req)
		return nil
	})
	require.Equal(tb, 200, ask(srv, "GET", "/").StatusCode)
}

func TestHitOfARequestDoesNotAllocate(t *testing.T) {
	hitting(t, func(req *server.Request) {
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = account.Get(req) }))
	})
}

// BenchmarkHitOfARequest reads a resolved property from the request, and from the context that it embeds.
func BenchmarkHitOfARequest(b *testing.B) {
	hitting(b, func(req *server.Request) {
		b.Run("request", func(b *testing.B) {
			for b.Loop() {
				_, _ = account.Get(req)
			}
		})
		b.Run("context", func(b *testing.B) {
			ctx := req.Context()
			for b.Loop() {
				_, _ = account.Get(ctx)
			}
		})
	})
}
