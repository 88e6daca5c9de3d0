// Package servertest tests handlers of a [server.Server]: it sends a request without a
// connection, with presets for properties, and reports which properties the request resolved.
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
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server/internal/requestwatch"
)

// Preset returns a copy of r in which the property key has the value v, so that the property is not resolved. If the
// server does not provide the property, [Do] fails the test. See [reqctx.Preset].
func Preset[T any](r *http.Request, key reqctx.Key[T], v T) *http.Request {
	return r.WithContext(reqctx.Preset(r.Context(), key, v))
}

// Response is the response to a request of [Do].
type Response struct {
	*httptest.ResponseRecorder
	// Resolved lists the names of the properties that the request resolved, in alphabetical order. It includes
	// properties that failed, and properties that tasks resolved after the handler had returned. It does not include
	// properties without I/O, such as params, presets, and values that the handler set.
	Resolved []string
}

// Do has h answer r. h is a [server.Server], or a handler that contains one or several. Do fails the
// test if r has a preset that a server which gets r does not provide. The panic with which a server
// cuts off a response, [http.ErrAbortHandler], passes on, without a Response. Do does not wait for a server
// that a middleware has left, such as [http.TimeoutHandler]: Resolved may be incomplete then.
func Do(tb testing.TB, h http.Handler, r *http.Request) *Response {
	tb.Helper()
	res := &Response{ResponseRecorder: httptest.NewRecorder()}
	var w watch
	h.ServeHTTP(res, r.WithContext(requestwatch.With(r.Context(), w.begin)))
	w.mu.Lock() // a server that a middleware has left may still be running
	defer w.mu.Unlock()
	if err := errors.Join(w.presetErrs...); err != nil {
		tb.Fatalf("servertest: %v", err)
	}
	slices.Sort(w.resolved)
	res.Resolved = slices.Clone(slices.Compact(w.resolved))
	return res
}

// watch collects reports of the servers that answer a request.
type watch struct {
	mu         sync.Mutex
	presetErrs []error
	resolved   []string
}

// begin is called before a server's handlers. The first function for OnClose is called last, when the
// request is complete.
func (w *watch) begin(h *reqctx.Host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.presetErrs = append(w.presetErrs, h.PresetErr())
	h.OnClose(func() error { w.end(&h.Context); return nil })
}

func (w *watch) end(c *reqctx.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, info := range c.Props() {
		if info.State == reqctx.Resolved || info.State == reqctx.Failed {
			w.resolved = append(w.resolved, name)
		}
	}
}

// RequireResolved fails the test unless exactly the properties with these names were resolved. The order does not
// matter.
func (res *Response) RequireResolved(tb testing.TB, names ...string) {
	tb.Helper()
	want := slices.Sorted(slices.Values(names))
	if !slices.Equal(want, res.Resolved) {
		tb.Fatalf("servertest: the request resolved [%s], want [%s]",
			strings.Join(res.Resolved, ", "), strings.Join(want, ", "))
	}
}
