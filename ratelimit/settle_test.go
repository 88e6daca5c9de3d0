package ratelimit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

// failures returns a policy that charges 401 responses.
func failures(limit int64) *ratelimit.Policy {
	p := ipPolicy("failures", limit)
	p.Settle = func(status int) bool { return status == http.StatusUnauthorized }
	return p
}

// settling is a store that records its calls, the registry with a policy, and its log.
type settling struct {
	store *storespy.Spy
	reg   *reqctx.Registry
	log   bytes.Buffer
	p     *ratelimit.Policy
}

func newSettling(t *testing.T, p *ratelimit.Policy, store ratelimit.Store) *settling {
	s := &settling{store: &storespy.Spy{Store: store}, p: p}
	s.reg = reqctx.NewRegistry(reqctx.Options{Logger: slog.New(slog.NewTextHandler(&s.log, nil))})
	ratelimit.Provide(s.reg, s.store, p)
	return s
}

// serve runs a request whose response has the status, and returns the header and the kinds of the store's ops.
func (s *settling) serve(t *testing.T, status int, handler func(c *reqctx.Host)) (http.Header, []ratelimit.Kind) {
	before := len(s.store.Calls())
	c, h := reqctx.New(t.Context(), s.reg), http.Header{}
	c.SetRequest(httptest.NewRequestWithContext(c, "GET", "/", nil))
	handler(c)
	require.NoError(t, c.Commit(status, h))
	require.NoError(t, c.Finish())
	var kinds []ratelimit.Kind
	for _, call := range s.store.Calls()[before:] {
		kinds = append(kinds, call.Ops[0].Kind)
	}
	return h, kinds
}

// charge takes. An error is a denial.
func (s *settling) charge(c *reqctx.Host) { _ = s.p.Require(c) }

func TestSettle(t *testing.T) {
	s := newSettling(t, failures(2), newStore(t, memstore.Options{}))
	take, refund := ratelimit.Take, ratelimit.Refund
	for _, tt := range []struct {
		status    int
		remaining string
		calls     []ratelimit.Kind
	}{
		{200, `r=2;`, []ratelimit.Kind{take, refund}},
		{401, `r=1;`, []ratelimit.Kind{take}},
		{500, `r=1;`, []ratelimit.Kind{take, refund}},
		{101, `r=0;`, []ratelimit.Kind{take}}, // hijacked
		{429, `r=0;`, []ratelimit.Kind{take}}, // a denial has no charge
	} {
		h, calls := s.serve(t, tt.status, s.charge)
		require.Contains(t, h.Get("RateLimit"), tt.remaining, tt.status)
		require.Equal(t, tt.calls, calls, tt.status)
	}
	_, calls := s.serve(t, 200, func(c *reqctx.Host) { _, _ = s.p.Peek(c) })
	require.Equal(t, []ratelimit.Kind{ratelimit.Peek}, calls)
	require.Empty(t, s.log.String())
}

// TestSettleOfSeveralRulesAndMeters checks that all rules of a policy are refunded, and a rule without a limit, too.
func TestSettleOfSeveralRulesAndMeters(t *testing.T) {
	for _, rules := range [][]ratelimit.Rule{
		{ratelimit.PerMinute(5), ratelimit.PerHour(9)},
		{ratelimit.Buckets(ratelimit.BucketOptions{})},
	} {
		p := failures(1)
		p.Rules = rules
		s := newSettling(t, p, newStore(t, memstore.Options{}))
		for n, status := range []int{401, 200, 401} {
			s.serve(t, status, s.charge)
			s.serve(t, 200, func(c *reqctx.Host) {
				require.EqualValues(t, []int{1, 1, 2}[n], must(p.Count(c)))
				res := must(p.Peek(c))
				for i, each := range res.Each() {
					require.EqualValues(t, rules[i].Limit()-[]int64{1, 1, 2}[n], each.Remaining)
				}
			})
		}
	}
}

// TestSettleAfterARefund checks that a handler's own refund counts.
func TestSettleAfterARefund(t *testing.T) {
	s := newSettling(t, failures(2), newStore(t, memstore.Options{}))
	_, calls := s.serve(t, 200, func(c *reqctx.Host) {
		s.charge(c)
		require.True(t, must(s.p.Refund(c)))
	})
	require.Equal(t, []ratelimit.Kind{ratelimit.Take, ratelimit.Refund}, calls)
	_, calls = s.serve(t, 200, func(c *reqctx.Host) { require.NoError(t, c.Commit(200, http.Header{})); s.charge(c) })
	require.Equal(t, []ratelimit.Kind{ratelimit.Take}, calls, "the header went out before the take")
}

func TestSettleThatFails(t *testing.T) {
	s := newSettling(t, failures(2), newStore(t, memstore.Options{}))
	s.store.Before = func(context.Context) error {
		if calls := s.store.Calls(); calls[len(calls)-1].Ops[0].Kind == ratelimit.Refund {
			return errors.New("store broke")
		}
		return nil
	}
	h, _ := s.serve(t, 200, s.charge)
	require.Contains(t, h.Get("RateLimit"), "r=1;")
	require.Contains(t, s.log.String(), "the charge stays")
	require.Contains(t, s.log.String(), "store broke")

	p := failures(2)
	p.Settle = func(int) bool { panic("settle broke") }
	s = newSettling(t, p, newStore(t, memstore.Options{}))
	h, calls := s.serve(t, 200, s.charge)
	require.Contains(t, h.Get("RateLimit"), "r=1;")
	require.Equal(t, []ratelimit.Kind{ratelimit.Take}, calls)
	require.Contains(t, s.log.String(), "settle broke")
}

// TestSettleWithoutACharge checks that a charge that the store did not make is not refunded there.
func TestSettleWithoutACharge(t *testing.T) {
	down := storespy.Func(func(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) { return nil, ratelimit.ErrStore })
	for _, o := range []layer.Options{
		{Failover: &layer.FailoverOptions{Mode: layer.Open}},
		{Lists: &layer.ListsOptions{Allow: layer.List{Prefixes: []string{"failures:"}}}},
	} {
		layered, err := layer.New(down, o)
		require.NoError(t, err)
		s := newSettling(t, failures(2), layered)
		_, calls := s.serve(t, 200, s.charge)
		require.Equal(t, []ratelimit.Kind{ratelimit.Take}, calls)
		require.Empty(t, s.log.String())
		require.NoError(t, layered.Close())
	}
}

// TestSettleOfADenial checks that a denied request is not refunded, even if a shadow rule has charged it.
func TestSettleOfADenial(t *testing.T) {
	p := failures(1)
	p.Rules = []ratelimit.Rule{ratelimit.PerMinute(1), ratelimit.PerHour(9)}
	shadow := &layer.ShadowOptions{Match: func(op ratelimit.Op) bool { return op.Rule.Limit() == 9 }}
	layered, err := layer.New(newStore(t, memstore.Options{}), layer.Options{Shadow: shadow})
	require.NoError(t, err)
	s := newSettling(t, p, layered)
	s.serve(t, 401, s.charge)
	_, calls := s.serve(t, 429, s.charge)
	require.Equal(t, []ratelimit.Kind{ratelimit.Take}, calls)
}

// TestSettlingWriter checks that each way to send the header settles the charge before, with the status of the response.
func TestSettlingWriter(t *testing.T) {
	for name, tt := range map[string]struct {
		handler   http.HandlerFunc
		status    int
		remaining string
	}{
		"nothing": {func(http.ResponseWriter, *http.Request) {}, 200, "r=2;"},
		"Write":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }, 200, "r=2;"},
		"Flush":   {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }, 200, "r=2;"},
		"a controller's Flush": {func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
		}, 200, "r=2;"},
		"WriteHeader": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, 401, "r=1;"},
		"an informational response": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(401)
		}, 401, "r=1;"},
		"a problem": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }, 401, "r=1;"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(newLimiting(t, failures(2), ratelimit.MiddlewareOptions{}).wrap(tt.handler))
			defer srv.Close()
			res, err := srv.Client().Get(srv.URL)
			require.NoError(t, err)
			defer res.Body.Close()
			require.Equal(t, tt.status, res.StatusCode)
			require.Contains(t, res.Header.Get("RateLimit"), tt.remaining)
		})
	}
}

//lint:ignore SA1019 frameworks assert it on whatever writer they get: gin does in Context.Stream
type closeNotifier = http.CloseNotifier

// TestSettlingWriterNotifies checks the method that gin's streams need.
func TestSettlingWriterNotifies(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	h := newLimiting(t, failures(2), ratelimit.MiddlewareOptions{}).wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		gone := w.(closeNotifier).CloseNotify()
		require.Empty(t, gone)
		leave()
		require.True(t, <-gone)
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
}

// TestMiddlewareKeepsTheCharge checks the cases in which the client may have got another response than the writer's.
func TestMiddlewareKeepsTheCharge(t *testing.T) {
	var leave context.CancelFunc
	for name, handler := range map[string]http.HandlerFunc{
		"hijacked": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			require.NoError(t, err)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			_ = conn.Close()
		},
		"aborted":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"has left": func(http.ResponseWriter, *http.Request) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			p := failures(2)
			m := newLimiting(t, p, ratelimit.MiddlewareOptions{})
			wrapped := m.wrap(handler)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var ctx context.Context
				ctx, leave = context.WithCancel(r.Context())
				defer leave()
				wrapped.ServeHTTP(w, r.WithContext(ctx))
			}))
			if res, err := srv.Client().Get(srv.URL); err == nil {
				_ = res.Body.Close()
			}
			srv.Close()
			require.Equal(t, 1, m.store.calls, "no refund")
		})
	}
}

// TestMiddlewareDeniesWithSettle checks that the middleware answers denials and failures of the store as without Settle.
func TestMiddlewareDeniesWithSettle(t *testing.T) {
	m := newLimiting(t, failures(1), ratelimit.MiddlewareOptions{FailOpen: true})
	h := m.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }))
	require.Equal(t, 401, ask(h).Code)
	rec := ask(h)
	require.Equal(t, 429, rec.Code)
	require.NotEmpty(t, rec.Header().Get("Retry-After"))
	require.Equal(t, 2, m.store.calls)
	m.store.err = ratelimit.ErrStore
	require.Equal(t, 401, ask(h).Code)
}
