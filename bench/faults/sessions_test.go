package faults

import (
	"io"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/session"
)

// fakeSessions has a single session. If it merges, it stores changed values only, and none after a logout.
type fakeSessions struct {
	merges bool
	broken string // a path whose requests fail

	mu     sync.Mutex
	values map[string]string // nil after a logout
}

func (f *fakeSessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, value := r.URL.RawQuery, "value"
	switch r.URL.Path {
	case f.broken:
		w.WriteHeader(http.StatusInternalServerError)
	case "/login":
		f.values = map[string]string{"user": name}
	case "/get":
		_, _ = io.WriteString(w, f.values[name])
	case "/logout":
		f.values = nil
	case "/put":
		loaded := maps.Clone(f.values)
		f.mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
		f.mu.Lock()
		switch {
		case !f.merges:
			loaded[name] = value
			f.values = loaded
		case f.values == nil:
			w.WriteHeader(http.StatusConflict)
		default:
			f.values[name] = value
		}
	}
}

func (f *fakeSessions) see(t *testing.T, check func(*visitor) (string, int)) (string, error) {
	seen, _, err := sessionProgram(session.Contender{Open: func(string) (http.Handler, func() error, error) {
		return f, func() error { return nil }, nil
	}}, check).check(t.Context(), "")
	return seen, err
}

func TestLostWritesAndRevivedSessionsAreNoticed(t *testing.T) {
	for _, c := range []struct {
		merges       bool
		lost, revive string
	}{
		{true, "0", "no, it gets a 409"},
		{false, "49", "yes"},
	} {
		seen, err := (&fakeSessions{merges: c.merges}).see(t, checkWriters)
		require.NoError(t, err)
		require.Equal(t, c.lost, seen)
		seen, err = (&fakeSessions{merges: c.merges}).see(t, checkLogout)
		require.NoError(t, err)
		require.Equal(t, c.revive, seen)
	}
}

func TestBrokenSessionsAreNoticed(t *testing.T) {
	for path, want := range map[string]string{
		"/login": "the user is not logged in", "/get": "a value cannot be read",
		"/put": "does not read the body, and its status is 500", "/logout": "the logout has failed",
	} {
		_, err := (&fakeSessions{merges: true, broken: path}).see(t, checkLogout)
		require.ErrorContains(t, err, want)
	}
	_, err := (&fakeSessions{merges: true, broken: "/put"}).see(t, checkWriters)
	require.ErrorContains(t, err, "a write has failed")
}
