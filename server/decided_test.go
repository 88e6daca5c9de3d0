package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// decisionWatcher is an observer that records the ops of rate limits. An op's request is part of its text.
type decisionWatcher struct{ watcher }

func (w *decisionWatcher) Decided(ctx context.Context, e ratelimit.Event) {
	text := fmt.Sprintf("%s: %s %v by %v, allowed=%v violated=%v", reqctx.From(ctx).Request().URL.Path,
		e.Policy, e.Op.Kind, e.Result.Source, e.Result.Allowed, e.Result.Violated)
	if e.Err != nil {
		text = fmt.Sprintf("%s: %s %v failed", reqctx.From(ctx).Request().URL.Path, e.Policy, e.Op.Kind)
	}
	w.note(text)
}

func (*panickingObserver) Decided(context.Context, ratelimit.Event) { panic("decided") }

// brittleStore is a store that fails while down is true.
type brittleStore struct {
	ratelimit.Store
	down atomic.Bool
}

func (b *brittleStore) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	if b.down.Load() {
		return ratelimit.Result{}, ratelimit.ErrStore
	}
	return b.Store.DoOne(ctx, op)
}

// layeredServer returns a server with policies of one request each: "strict", "tried", whose rule is a shadow rule, and
// "open", which allows requests while the returned store fails. Each has a route. A request takes two of three units, so
// the deny cache cannot know the first denial.
func layeredServer(t *testing.T, observers ...server.Observer) (*server.Server, *brittleStore) {
	memory, err := ratestore.New(ratestore.Options{})
	require.NoError(t, err)
	store := &brittleStore{Store: memory}
	layered, err := layer.New(store, layer.Options{
		Shadow:    &layer.ShadowOptions{Match: func(op ratelimit.Op) bool { return op.Rule.Name() == "tried" }},
		DenyCache: &layer.DenyCacheOptions{},
		Failover: &layer.FailoverOptions{Logger: slog.New(slog.DiscardHandler), ModeFor: func(r ratelimit.Rule) layer.Mode {
			return map[string]layer.Mode{"open": layer.Open}[r.Name()]
		}},
	})
	require.NoError(t, err)
	var policies []*ratelimit.Policy
	for _, name := range []string{"strict", "tried", "open"} {
		p := ratelimit.NewPolicy(name, ratelimit.ByHeader("X-Key"), ratelimit.PerMinute(3).WithName(name))
		p.Cost = func(context.Context, *http.Request) (int64, error) { return 2, nil }
		policies = append(policies, p)
	}
	srv, _ := newServer(t, server.Options{Observers: observers, RateLimits: policies, RateLimitStore: layered})
	for _, p := range policies {
		srv.HandleFunc("GET /"+p.Name, func(http.ResponseWriter, *server.Request) error { return nil }, server.Require(p))
	}
	return srv, store
}

// TestEachDecisionArrivesOnce checks over HTTP that an observer gets each decision once, whichever layer has answered,
// and that a panic of another observer changes nothing.
func TestEachDecisionArrivesOnce(t *testing.T) {
	w := &decisionWatcher{}
	srv, store := layeredServer(t, &panickingObserver{}, w)
	ts := httptest.NewServer(srv)
	defer ts.Close()
	for _, step := range []struct {
		path, key string
		down      bool
		status    int
		want      string
	}{
		{"/strict", "a", false, 200, "strict take by store, allowed=true violated=false"},
		{"/strict", "a", false, 429, "strict take by store, allowed=false violated=true"},
		{"/strict", "a", true, 429, "strict take by deny cache, allowed=false violated=true"},
		{"/tried", "a", false, 200, "tried take by shadow, allowed=true violated=false"},
		{"/tried", "a", false, 200, "tried take by shadow, allowed=true violated=true"},
		{"/strict", "b", true, 503, "strict take failed"},
		{"/open", "b", true, 200, "open take by failover, allowed=true violated=false"},
	} {
		store.down.Store(step.down)
		r, err := http.NewRequestWithContext(t.Context(), "GET", ts.URL+step.path, nil)
		require.NoError(t, err)
		r.Header.Set("X-Key", step.key)
		res, err := do(ts.Client(), r)
		require.NoError(t, err)
		require.Equal(t, step.status, res.StatusCode, step.want)
		require.Equal(t, []string{step.path + ": " + step.want}, w.decided())
	}
}

// decided returns the ops since the previous call.
func (w *decisionWatcher) decided() (ops []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, call := range w.calls {
		if call[0] == '/' {
			ops = append(ops, call)
		}
	}
	w.calls = nil
	return ops
}
