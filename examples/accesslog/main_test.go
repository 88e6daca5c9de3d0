package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is one line of the access log.
type line struct {
	Level, Msg    string
	Method, Route string
	Status, Bytes int
	Ms            float64
	End           string
	Properties    map[string]float64
	Failed        []string
	Limits        map[string]struct {
		Allowed bool
		Key     string
	}
}

// lines is a writer that sends each line of the log to a channel. slog writes each line with one call.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// next returns the next line that is about the end of a request.
func (l lines) next(t *testing.T) line {
	t.Helper()
	for {
		var got line
		text := <-l
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		if got.Msg == "request" {
			return got
		}
	}
}

func newTestServer(t *testing.T) (*server.Server, lines) {
	out := make(lines, 10_000)
	srv, err := newServer(slog.New(slog.NewJSONHandler(out, nil)))
	require.NoError(t, err)
	return srv, out
}

func get(h http.Handler, path string) *http.Response {
	r := httptest.NewRequest("GET", path, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestOneLineForEachRequest(t *testing.T) {
	srv, out := newTestServer(t)
	require.Equal(t, 200, get(srv, "/profile?name=secret").StatusCode)
	got := out.next(t)
	require.Equal(t, "INFO", got.Level)
	require.Equal(t, "GET", got.Method)
	require.Equal(t, "GET /profile", got.Route)
	require.Equal(t, 200, got.Status)
	require.Equal(t, len("visitor, seen 0 times\n"), got.Bytes)
	require.Equal(t, "complete", got.End)
	require.Empty(t, got.Failed)
	require.Len(t, got.Properties, 4)
	for _, name := range []string{"account", "session", "ratelimit.profile.key", "ratelimit.profile.take"} {
		require.Contains(t, got.Properties, name)
		require.LessOrEqual(t, got.Properties[name], got.Ms)
	}
	require.True(t, got.Limits["profile"].Allowed)
	require.Regexp(t, `^[0-9a-f]{16}$`, got.Limits["profile"].Key)

	require.Equal(t, 200, get(srv, "/fast").StatusCode)
	got = out.next(t)
	require.Empty(t, got.Properties, "nothing was resolved")
	require.Empty(t, got.Limits)

	require.Equal(t, 404, get(srv, "/users/secret").StatusCode)
	got = out.next(t)
	require.Equal(t, 404, got.Status)
	require.Empty(t, got.Route)
	require.Empty(t, out, "one line for each")
}

func TestDeniedRequests(t *testing.T) {
	srv, out := newTestServer(t)
	var first line
	for i := range 6 {
		get(srv, "/profile")
		got := out.next(t)
		if i == 0 {
			first = got
		}
		require.Equal(t, i < 5, got.Limits["profile"].Allowed)
		require.Equal(t, first.Limits["profile"].Key, got.Limits["profile"].Key)
		require.Equal(t, "complete", got.End)
	}
	other, lines := newTestServer(t)
	get(other, "/profile")
	require.NotEqual(t, first.Limits["profile"].Key, lines.next(t).Limits["profile"].Key, "the hash has a secret")
}

// TestNothingPersonal checks that the log has no keys, paths, queries and error texts.
func TestNothingPersonal(t *testing.T) {
	srv, out := newTestServer(t)
	srv.HandleFunc("GET /users/{id}", func(_ http.ResponseWriter, req *server.Request) error {
		_ = req.RateLimit().Require()
		return server.Errorf(404, "no such user: %s", req.PathValue("id"))
	})
	r := httptest.NewRequest("GET", "/users/secret-id?q=secret-query", nil)
	r.Header.Set("Cookie", "session=secret-cookie")
	srv.ServeHTTP(httptest.NewRecorder(), r)
	r = httptest.NewRequest("GET", "/fast", nil)
	r.Method = "SECRET\n{}"
	srv.ServeHTTP(httptest.NewRecorder(), r)
	for range 2 {
		text := <-out
		require.Contains(t, text, `"msg":"request"`)
		require.NotContains(t, strings.ToLower(text), "secret")
		require.NotContains(t, text, "192.0.2.1", "the client's address")
		require.Equal(t, 1, strings.Count(text, "\n"))
	}
}

func TestEnds(t *testing.T) {
	srv, out := newTestServer(t)
	entered := make(chan struct{})
	handle := func(path string, h server.HandlerFunc) { srv.HandleFunc("GET "+path, h) }
	handle("/panic", func(http.ResponseWriter, *server.Request) error { panic("oh") })
	handle("/stream", func(w http.ResponseWriter, _ *server.Request) error {
		for range 3 {
			if _, err := io.WriteString(w, "event\n"); err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
		}
		return nil
	})
	handle("/cut", func(w http.ResponseWriter, _ *server.Request) error {
		_, _ = io.WriteString(w, "part")
		return errors.New("the rest is missing")
	})
	handle("/abort", func(http.ResponseWriter, *server.Request) error { panic(http.ErrAbortHandler) })
	handle("/wait", func(_ http.ResponseWriter, req *server.Request) error {
		close(entered)
		<-req.Context().Done()
		return context.Cause(req)
	})
	handle("/hijack", func(w http.ResponseWriter, _ *server.Request) error {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		return conn.Close()
	})
	ts := httptest.NewServer(srv)
	defer ts.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // without keep-alives, the client never repeats a request
	ask := func(ctx context.Context, path string) {
		r, err := http.NewRequestWithContext(ctx, "GET", ts.URL+path, nil)
		require.NoError(t, err)
		if res, err := client.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}
	for path, want := range map[string]line{
		"/panic":  {Status: 500, End: "panic"},
		"/stream": {Status: 200, End: "complete", Bytes: 18},
		"/cut":    {Status: 200, End: "cut off", Bytes: 4},
		"/abort":  {Status: 0, End: "cut off"},
		"/hijack": {Status: 0, End: "hijacked"},
	} {
		ask(t.Context(), path)
		got := out.next(t)
		require.Equal(t, "GET "+path, got.Route)
		require.Equal(t, want.Status, got.Status, path)
		require.Equal(t, want.End, got.End, path)
		if want.Bytes > 0 {
			require.Equal(t, want.Bytes, got.Bytes, path)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	ask(ctx, "/wait")
	require.Equal(t, "canceled", out.next(t).End)
}

func TestConcurrentRequests(t *testing.T) {
	srv, out := newTestServer(t)
	const clients, each = 8, 50
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				get(srv, "/fast")
				get(srv, "/profile")
			}
		})
	}
	wg.Wait()
	routes := map[string]int{}
	for range 2 * clients * each {
		routes[out.next(t).Route]++
	}
	require.Equal(t, map[string]int{"GET /fast": clients * each, "GET /profile": clients * each}, routes)
	require.Empty(t, out)
}
