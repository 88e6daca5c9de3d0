package servertest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/servertest"
	"github.com/lazyreq/lazyreq/session"
)

var (
	user    = reqctx.NewKey[string]("user")
	missing = reqctx.NewKey[string]("missing")
)

// newServer returns a server with a property that reads the session.
func newServer(tb testing.TB) *server.Server {
	srv, err := server.New(server.Options{})
	require.NoError(tb, err)
	reqctx.Provide(srv.Registry(), user, reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		s, err := session.From(ctx)
		if err != nil {
			return "", err
		}
		return s.User()
	}})
	srv.HandleFunc("GET /me", func(w http.ResponseWriter, req *server.Request) error {
		name, err := user.Get(req.Context())
		if err != nil {
			return err
		}
		return server.WriteJSON(w, http.StatusOK, name)
	})
	srv.HandleFunc("GET /fast", func(http.ResponseWriter, *server.Request) error { return nil })
	srv.HandleFunc("GET /panic", func(_ http.ResponseWriter, req *server.Request) error {
		_, _ = user.Get(req.Context())
		panic("boom")
	})
	return srv
}

func TestDo(t *testing.T) {
	srv := newServer(t)
	used := 0
	srv.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { used++; next.ServeHTTP(w, r) })
	})
	res := servertest.Do(t, srv, httptest.NewRequest("GET", "/me", nil))
	require.Equal(t, 200, res.Code)
	require.Equal(t, "\"\"\n", res.Body.String())
	require.Equal(t, []string{"session", "user"}, res.Resolved)
	res.RequireResolved(t, "user", "session")
	require.Equal(t, "Cookie", res.Header().Get("Vary"))
	require.Equal(t, 1, used)

	res = servertest.Do(t, srv, servertest.Preset(httptest.NewRequest("GET", "/me", nil), user, "ada"))
	require.Equal(t, "\"ada\"\n", res.Body.String())
	res.RequireResolved(t)
	require.Empty(t, res.Header().Get("Vary"))

	servertest.Do(t, srv, httptest.NewRequest("GET", "/fast", nil)).RequireResolved(t)
	res = servertest.Do(t, srv, httptest.NewRequest("GET", "/panic", nil))
	require.Equal(t, 500, res.Code)
	res.RequireResolved(t, "session", "user")
	require.Equal(t, 404, servertest.Do(t, srv, httptest.NewRequest("GET", "/nowhere", nil)).Code)
}

// fails runs fn with its own testing.TB and returns the message of fn's failure.
func fails(t *testing.T, fn func(tb testing.TB)) string {
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		fn(f)
	}()
	<-done
	return f.msg
}

type failing struct {
	testing.TB
	msg string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.msg = fmt.Sprintf(format, args...)
	panic(f)
}

func TestFailures(t *testing.T) {
	srv := newServer(t)
	require.Contains(t, fails(t, func(tb testing.TB) {
		servertest.Do(tb, srv, httptest.NewRequest("GET", "/me", nil)).RequireResolved(tb, "user")
	}), "the request resolved [session, user], want [user]")
	require.Contains(t, fails(t, func(tb testing.TB) {
		servertest.Do(tb, srv, httptest.NewRequest("GET", "/fast", nil)).RequireResolved(tb, "user")
	}), "resolved [], want [user]")
	require.Contains(t, fails(t, func(tb testing.TB) {
		servertest.Do(tb, srv, servertest.Preset(httptest.NewRequest("GET", "/me", nil), missing, "x"))
	}), `preset of "missing"`)
}

// Do works with handlers that contain one server, several or none.
func TestHandlersThatContainServers(t *testing.T) {
	ada := func(path string) *http.Request {
		return servertest.Preset(httptest.NewRequest("GET", path, nil), user, "ada")
	}
	srv := newServer(t)
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", srv))
	mux.Handle("/wrapped", srv.WrapFunc(func(w http.ResponseWriter, req *server.Request) error {
		_, err := req.Session().User()
		return err
	}))
	mux.HandleFunc("/plain", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })

	res := servertest.Do(t, mux, httptest.NewRequest("GET", "/api/me", nil))
	require.Equal(t, 200, res.Code)
	res.RequireResolved(t, "session", "user")
	servertest.Do(t, mux, ada("/api/me")).RequireResolved(t)
	servertest.Do(t, mux, ada("/wrapped")).RequireResolved(t, "session")
	res = servertest.Do(t, mux, ada("/plain"))
	require.Equal(t, http.StatusTeapot, res.Code)
	res.RequireResolved(t)

	require.Contains(t, fails(t, func(tb testing.TB) {
		servertest.Do(tb, mux, servertest.Preset(httptest.NewRequest("GET", "/api/me", nil), missing, "x"))
	}), `preset of "missing"`)
}

// Presets of a request also reach a server inside another server, and the properties that both have resolved are
// reported.
func TestServerWithinAServer(t *testing.T) {
	inner, outer := newServer(t), newServer(t)
	outer.Handle("/inner/", http.StripPrefix("/inner", inner))
	outer.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = session.From(r.Context())
			if r.URL.RawQuery == "read" {
				_, _ = user.Get(r.Context())
			}
			next.ServeHTTP(w, r)
		})
	})
	servertest.Do(t, outer, httptest.NewRequest("GET", "/inner/me", nil)).RequireResolved(t, "session", "user")
	servertest.Do(t, outer, httptest.NewRequest("GET", "/inner/fast?read", nil)).RequireResolved(t, "session", "user")
	servertest.Do(t, outer, httptest.NewRequest("GET", "/inner/me?read", nil)).RequireResolved(t, "session", "user") // in both
	r := servertest.Preset(servertest.Preset(httptest.NewRequest("GET", "/inner/me?read", nil), user, "bob"), user, "ada")
	res := servertest.Do(t, outer, r)
	require.Equal(t, "\"ada\"\n", res.Body.String(), "the last preset")
	res.RequireResolved(t)
}

// Properties are reported even if a task resolves them after the handler has returned.
func TestResolvedAfterTheHandler(t *testing.T) {
	srv := newServer(t)
	late := reqctx.NewKey[string]("late")
	begun := make(chan struct{})
	reqctx.Provide(srv.Registry(), late, reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		close(begun)
		<-ctx.Done() // the handler has returned
		return "", nil
	}})
	srv.HandleFunc("GET /task", func(_ http.ResponseWriter, req *server.Request) error {
		err := req.Go("late", func(ctx context.Context) error { _, err := late.Get(ctx); return err })
		<-begun
		return err
	})
	servertest.Do(t, srv, httptest.NewRequest("GET", "/task", nil)).RequireResolved(t, "late")
}

// TestServerThatIsStillRunning is for the race detector: a server that a middleware has left may end while Do
// returns.
func TestServerThatIsStillRunning(t *testing.T) {
	srv := newServer(t)
	entered, ended := make(chan struct{}), make(chan struct{})
	srv.HandleFunc("GET /slow", func(_ http.ResponseWriter, req *server.Request) error {
		close(entered)
		_, err := user.Get(req.Context())
		return err
	})
	leave := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		go func() {
			defer close(ended)
			srv.ServeHTTP(httptest.NewRecorder(), r)
		}()
		<-entered
	})
	require.Equal(t, 200, servertest.Do(t, leave, httptest.NewRequest("GET", "/slow", nil)).Code)
	<-ended
}
