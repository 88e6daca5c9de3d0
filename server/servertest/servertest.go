// Package servertest tests handlers of a [server.Server]: it sends a request without a
// connection, with presets for properties, and reports which properties the handler resolved.
//
//	r := httptest.NewRequest("GET", "/me", nil)
//	r = servertest.Preset(r, User, &UserRecord{Name: "ada"})
//	res := servertest.Do(t, srv, r)
//	require.Equal(t, 200, res.Code)
//	res.RequireResolved(t) // neither a session nor a limit: the preset was enough
//
// The properties session, params and ratelimit can't be preset. They need no fake: a server
// without stores keeps sessions and counters in memory, and a request brings its own cookie and
// body.
package servertest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// Preset returns r with v as the value of the property key, which is not resolved then. A
// property that the server does not provide makes [Do] fail the test. See [reqctx.Preset].
func Preset[T any](r *http.Request, key reqctx.Key[T], v T) *http.Request {
	return r.WithContext(reqctx.Preset(r.Context(), key, v))
}

// Response is the response to a request of [Do].
type Response struct {
	*httptest.ResponseRecorder
	// Resolved are the names of the properties that were resolved before the handler
	// returned, in alphabetical order, also those that failed. Properties without I/O,
	// such as params, presets and values that the handler set are not in it.
	Resolved []string
}

// Do has srv answer r, its middleware included. It fails the test if r has a preset that srv does
// not provide. The panic with which srv cuts off a response, [http.ErrAbortHandler], passes on.
func Do(tb testing.TB, srv *server.Server, r *http.Request) *Response {
	tb.Helper()
	probe := reqctx.New(r.Context(), srv.Registry())
	err := probe.PresetErr()
	_ = probe.Finish() // nothing was resolved
	if err != nil {
		tb.Fatalf("servertest: %v", err)
	}
	res := &Response{ResponseRecorder: httptest.NewRecorder()}
	srv.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { res.Resolved = resolved(reqctx.From(r.Context())) }()
		srv.ServeHTTP(w, r) // within the same exchange
	})).ServeHTTP(res, r)
	return res
}

// resolved returns the names of the properties that c has resolved.
func resolved(c *reqctx.Context) (names []string) {
	for name, info := range c.Props() {
		if info.State == reqctx.Resolved || info.State == reqctx.Failed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// RequireResolved fails the test if other properties than these were resolved, or not all of
// them, in any order.
func (res *Response) RequireResolved(tb testing.TB, names ...string) {
	tb.Helper()
	want := slices.Sorted(slices.Values(names))
	if !slices.Equal(want, res.Resolved) {
		tb.Fatalf("servertest: the handler resolved [%s], want [%s]",
			strings.Join(res.Resolved, ", "), strings.Join(want, ", "))
	}
}
