package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newInspector(tb testing.TB, o Options) *Inspector {
	in, err := New(o)
	require.NoError(tb, err)
	return in
}

// finish reports a request with this duration to in.
func finish(in *Inspector, pattern string, status int, took time.Duration) {
	c := reqctx.New(context.Background(), emptyRegistry)
	r := &http.Request{Method: "GET"}
	in.RequestEnd(c, server.RequestInfo{Request: r, Pattern: pattern, Status: status, Began: time.Now().Add(-took), Took: took})
}

var emptyRegistry = reqctx.NewRegistry(reqctx.Options{})

// kept returns the recorded requests of a route, the newest first.
func kept(in *Inspector, route string) []requestSummary {
	return in.snapshot(filter{route: route}).Requests
}

// If many requests are denied, only a sample of them is recorded.
func TestDenialsAreSampled(t *testing.T) {
	in := newInspector(t, Options{})
	for range 10_000 {
		finish(in, "GET /a", 429, time.Microsecond)
	}
	require.Less(t, in.store.lastID, uint64(10_000/2))
	require.Len(t, kept(in, "GET /a"), ringSize)
}

func TestSlowFailedAndDeniedAreRecorded(t *testing.T) {
	in := newInspector(t, Options{PerSecond: 1, Slow: 50 * time.Millisecond})
	for range 4 {
		finish(in, "GET /a", 200, time.Microsecond)
	}
	for range 4 {
		finish(in, "GET /a", 200, 60*time.Millisecond)
		finish(in, "GET /a", 500, time.Microsecond)
		finish(in, "GET /a", 429, time.Microsecond)
	}
	for kind, n := range map[string]int{"slow": 4, "failed": 4, "denied": 4} {
		require.Len(t, in.snapshot(filter{kind: kind}).Requests, n, kind)
	}
	ordinary := len(in.snapshot(filter{}).Requests) - 12
	require.LessOrEqual(t, ordinary, 2, "1, or 2 if the second has changed")
}

func TestFailedRequests(t *testing.T) {
	err := errors.New("no user")
	for name, tt := range map[string]struct {
		info server.RequestInfo
		want bool
	}{
		"client's":             {server.RequestInfo{Status: 401, Err: err}, false},
		"server's":             {server.RequestInfo{Status: 500, Err: err}, true},
		"cut off":              {server.RequestInfo{Status: 200, Err: err, CutOff: true}, true},
		"panic, then a page":   {server.RequestInfo{Status: 404, Err: lazy.NewPanicError("p", 1)}, true},
		"hijacked, failed":     {server.RequestInfo{Err: err}, true},
		"websocket that fails": {server.RequestInfo{Status: 101, Err: err}, true},
	} {
		require.Equal(t, tt.want, outcomeOf(&tt.info, nil).Failed, name)
	}
}

func TestFastRequestsDoNotDisplaceOthersOfTheirRoute(t *testing.T) {
	in := newInspector(t, Options{PerSecond: 1 << 20})
	finish(in, "GET /a", 200, 5*time.Millisecond)
	finish(in, "GET /a", 500, time.Microsecond)
	for range 10 * ringSize {
		finish(in, "GET /a", 200, time.Microsecond)
	}
	all := kept(in, "GET /a")
	require.Len(t, all, ringSize+2)
	require.True(t, all[ringSize].Failed)
	require.EqualValues(t, 5, all[ringSize+1].Took)
}

func TestOldestRecordsAreDropped(t *testing.T) {
	in := newInspector(t, Options{MaxBytes: minMaxBytes, PerSecond: 1 << 20})
	for i := range 100_000 {
		finish(in, "GET /"+strconv.Itoa(i%500), 200, time.Duration(rand.Int64N(int64(2*time.Second))))
		require.LessOrEqual(t, in.store.bytes, minMaxBytes)
	}
	n, bytes := 0, 0
	for e := in.store.records.Front(); e != nil; e = e.Next() {
		rec := e.Value.(*record)
		n, bytes = n+1, bytes+rec.size
		require.Same(t, rec, in.store.byID[rec.ID])
		require.Same(t, rec, rec.ring.records[rec.slot])
	}
	require.Len(t, in.store.byID, n)
	require.Equal(t, in.store.bytes, bytes+len(in.store.routes)*routeSize)
	require.Equal(t, in.store.lastID, in.store.records.Front().Value.(*record).ID)
	require.LessOrEqual(t, len(in.store.routes)*routeSize, minMaxBytes/2)
	require.Positive(t, in.store.routes[otherRoutes].Requests)
}

func TestMemoryStaysBelowTheCap(t *testing.T) {
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	in := newInspector(t, Options{PerSecond: 1 << 20})
	reg := reqctx.NewRegistry(reqctx.Options{})
	for i := range 10 {
		reqctx.Provide(reg, reqctx.NewKey[int](fmt.Sprint("memory.", i)), reqctx.Prop[int]{
			Resolve: func(context.Context) (int, error) { return 0, errors.New("failed") },
		})
	}
	before := heap()
	c := reqctx.New(t.Context(), reg)
	require.Error(t, reqctx.Resolve(c, "memory.9"))
	info := server.RequestInfo{Request: httptest.NewRequest("GET", "/", nil), Status: 200, CutOff: true, Began: time.Now(), Err: errors.New("an error of common length")}
	for i := range 300_000 {
		info.Pattern, info.Took = fmt.Sprint("GET /route/", i%1000), time.Duration(rand.Int64N(int64(2*time.Second)))
		in.RequestEnd(c, info)
	}
	require.NoError(t, c.Finish())
	used := heap() - before
	t.Logf("%d requests kept, %d bytes counted, heap grew by %d", len(in.store.byID), in.store.bytes, used)
	require.Greater(t, in.store.bytes, defaultMaxBytes*9/10, "the cap is reached")
	require.Less(t, used, defaultMaxBytes*5/4)
	runtime.KeepAlive(in)
}

func TestHistogram(t *testing.T) {
	require.Zero(t, new(histogram).quantile(.5))
	for i := range buckets {
		require.Equal(t, i, bucketOf(lowerBound(i)), "bucket %d", i)
	}
	require.Equal(t, buckets-1, bucketOf(1e6*time.Hour))
	require.Equal(t, 0, bucketOf(-1))
	var h histogram
	for ms := range 1000 {
		h.add(time.Duration(ms+1) * time.Millisecond)
	}
	require.InEpsilon(t, float64(500*time.Millisecond), float64(h.quantile(.5)), .07)
	require.InEpsilon(t, float64(990*time.Millisecond), float64(h.quantile(.99)), .07)
}

func TestWindow(t *testing.T) {
	var w window
	now := time.Unix(1_000_000, 0)
	for i := range 200 { // a request a second, of which the last 60 matter
		s := w.secondAt(now.Add(time.Duration(i-199) * time.Second))
		s.Requests++
		s.took.add(10 * time.Millisecond)
	}
	got := w.summary(now)
	require.EqualValues(t, 60, got.Requests)
	require.EqualValues(t, 1, got.PerSecond)
	require.InEpsilon(t, 10, got.P99, .07)
	require.Zero(t, w.summary(now.Add(2*time.Minute)).Requests)
}

// observed returns a server with two properties and a limit of two, its inspector, and a
// function that sends a request.
func observed(tb testing.TB, o Options) (*server.Server, *Inspector, func(path string)) {
	in := newInspector(tb, o)
	inner, err := memstore.New(memstore.Options{})
	require.NoError(tb, err)
	store, err := layer.New(inner, layer.Options{Shadow: &layer.ShadowOptions{
		Match: func(op ratelimit.Op) bool { return op.Rule.Per() == time.Hour },
	}})
	require.NoError(tb, err)
	srv, err := server.New(server.Options{
		Observers: []server.Observer{in}, Callers: true, RateLimitStore: store, Logger: slog.New(slog.DiscardHandler),
		RateLimits: []*ratelimit.Policy{ratelimit.NewPolicy("pages", ratelimit.ByIP(), ratelimit.PerMinute(2), ratelimit.PerHour(1))},
	})
	require.NoError(tb, err)
	account := reqctx.NewKey[string]("account")
	reqctx.Provide(srv.Registry(), account, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "secret-account", nil },
	})
	user := reqctx.NewKey[string]("user")
	reqctx.Provide(srv.Registry(), user, reqctx.Prop[string]{Resolve: account.Get})
	reqctx.Provide(srv.Registry(), reqctx.NewKey[int]("broken"), reqctx.Prop[int]{
		Resolve: func(context.Context) (int, error) { return 0, errors.New("<img src=x onerror=alert(1)>") },
	})
	srv.HandleFunc("GET /user/{id}", func(_ http.ResponseWriter, req *server.Request) error { _, err := req.Get("user"); return err })
	srv.HandleFunc("GET /broken", func(_ http.ResponseWriter, req *server.Request) error { _, err := req.Get("broken"); return err })
	srv.HandleFunc("GET /limited", func(_ http.ResponseWriter, req *server.Request) error {
		res, err := req.RateLimit().Take()
		return errors.Join(err, res.Err())
	})
	srv.HandleFunc("GET /panic", func(http.ResponseWriter, *server.Request) error { panic("oh") })
	return srv, in, func(path string) {
		srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
}

// newest returns the details of the latest request.
func newest(t *testing.T, in *Inspector) requestDetails {
	t.Helper()
	all := in.snapshot(filter{}).Requests
	require.NotEmpty(t, all)
	d, found := in.details(all[0].ID)
	require.True(t, found)
	return d
}

func find(t *testing.T, d requestDetails, name string) property {
	t.Helper()
	for _, p := range d.Properties {
		if p.Name == name {
			return p
		}
	}
	require.Fail(t, "no such property", name)
	return property{}
}

func TestRequestHasItsProperties(t *testing.T) {
	_, in, get := observed(t, Options{})
	get("/user/private-id?token=private")
	d := newest(t, in)
	require.Equal(t, "GET /user/{id}", d.Route)
	require.Equal(t, 200, d.Status)
	require.Equal(t, 2, d.Read)
	require.Empty(t, d.Path, "paths are hidden")
	user, account := find(t, d, "user"), find(t, d, "account")
	require.Equal(t, "resolved", user.State)
	require.Contains(t, user.Caller, "inspect/inspector_test.go:")
	require.Equal(t, "user", account.By)
	require.LessOrEqual(t, user.Start, account.Start)
	require.LessOrEqual(t, account.Took, user.Took)
	require.Empty(t, account.Value)
	require.Equal(t, "unused", find(t, d, "broken").State)
	require.Equal(t, "unused", find(t, d, "session").State)
}

func TestValuesAndPathsAreShownOnRequest(t *testing.T) {
	_, in, get := observed(t, Options{Paths: true, Values: []string{"account"}})
	get("/user/7?token=private")
	d := newest(t, in)
	require.Equal(t, "/user/7", d.Path)
	require.Equal(t, "secret-account", find(t, d, "account").Value)
	require.Empty(t, find(t, d, "user").Value)
}

func TestErrorsAreRecorded(t *testing.T) {
	_, in, get := observed(t, Options{})
	get("/broken")
	d := newest(t, in)
	require.True(t, d.Failed)
	require.Equal(t, 500, d.Status)
	require.Equal(t, "<img src=x onerror=alert(1)>", d.Error)
	require.Equal(t, "failed", find(t, d, "broken").State)
	get("/panic")
	require.True(t, newest(t, in).Failed)
	get("/elsewhere")
	d = newest(t, in)
	require.Equal(t, noRoute, d.Route)
	require.False(t, d.Failed)
}

func TestDecisionsOfShadowAndEnforcedRules(t *testing.T) {
	_, in, get := observed(t, Options{})
	for range 3 {
		get("/limited")
	}
	d := newest(t, in)
	require.True(t, d.Denied)
	require.Len(t, d.Decisions, 2)
	require.False(t, d.Decisions[0].Allowed)
	require.Positive(t, d.Decisions[0].RetryAfter)
	require.True(t, d.Decisions[1].Shadow)

	s := in.snapshot(filter{})
	require.Len(t, s.Limiters, 2)
	minute, hour := s.Limiters[1], s.Limiters[0]
	require.Equal(t, "pages.60s", minute.Name)
	require.EqualValues(t, []uint64{3, 1, 0}, []uint64{minute.Takes, minute.Denied, minute.ShadowTakes})
	require.Equal(t, "pages.1h", hour.Name)
	require.EqualValues(t, []uint64{0, 0, 3, 1}, []uint64{hour.Takes, hour.Denied, hour.ShadowTakes, hour.ShadowDenied})
	require.EqualValues(t, 1, s.Strip.Denied)
	require.EqualValues(t, 3, s.Strip.StoreCalls)
	require.Zero(t, s.Strip.StoreErrors)
}

// TestDecisionsOfALimiter checks that a limiter's decisions are counted if its store is observed, and that the page does
// not show its keys.
func TestDecisionsOfALimiter(t *testing.T) {
	_, in, get := observed(t, Options{})
	get("/limited")
	memory, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	limiter, err := ratelimit.NewLimiter(ratelimit.Observe(memory, in.Decided), ratelimit.PerMinute(1))
	require.NoError(t, err)
	for range 3 {
		_, err := limiter.Take(t.Context(), "secret", 1)
		require.NoError(t, err)
	}
	_, err = limiter.Peek(t.Context(), "secret", 1)
	require.NoError(t, err)
	_, err = limiter.Take(t.Context(), "secret", 100)
	require.ErrorIs(t, err, ratelimit.ErrTooLarge)
	in.Decided(t.Context(), ratelimit.Event{
		Op:    ratelimit.Op{Rule: ratelimit.PerMinute(1), Kind: ratelimit.Take},
		Began: time.Now(), Result: ratelimit.Result{Allowed: true, Source: ratelimit.FromFailover},
	})
	s := in.snapshot(filter{})
	require.Len(t, s.Limiters, 3)
	require.Equal(t, quotaSummary{Name: "60s", Rule: "1 per minute, buckets", Limit: 1, Takes: 4, Denied: 2, Failovers: 1}, s.Limiters[0])
	require.EqualValues(t, 1, s.Strip.Failovers)
	require.NotContains(t, fmt.Sprintf("%+v", s), "secret")
}

func TestStoreErrorsAreCounted(t *testing.T) {
	in := newInspector(t, Options{})
	down := ratelimit.NewPolicy("down", func(context.Context, *http.Request) (string, error) { return "", ratelimit.ErrStore }, ratelimit.PerMinute(2))
	srv, err := server.New(server.Options{Observers: []server.Observer{in}, Logger: slog.New(slog.DiscardHandler), RateLimits: []*ratelimit.Policy{down}})
	require.NoError(t, err)
	srv.HandleFunc("GET /{$}", func(_ http.ResponseWriter, req *server.Request) error { return down.Require(req) })
	srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	s := in.snapshot(filter{})
	require.EqualValues(t, 1, s.Strip.StoreErrors)
	require.EqualValues(t, 1, s.Strip.Failed)
}

func TestTimeSaved(t *testing.T) {
	p := propertyStats{}
	p.add(&reqctx.Info{State: reqctx.Resolved, Took: 2 * time.Millisecond})
	p.add(&reqctx.Info{State: reqctx.Failed, Took: 4 * time.Millisecond})
	p.add(&reqctx.Info{State: reqctx.Assigned})
	for range 10 {
		p.add(&reqctx.Info{State: reqctx.Unused})
	}
	require.EqualValues(t, 13, p.requests)
	require.EqualValues(t, 3, p.needed)
	require.EqualValues(t, 1, p.failed)
	require.Equal(t, 30*time.Millisecond, p.timeSaved())
	p.addRead(4 * time.Millisecond) // of the 6 ms of both resolutions
	require.Equal(t, 10*time.Millisecond, p.timeSaved())
	p.addRead(time.Second) // properties that it reads in parallel
	require.Zero(t, p.timeSaved())
}

func TestOptions(t *testing.T) {
	for field, o := range map[string]Options{
		"Options.Token": {Token: "short"}, "Options.Slow": {Slow: -1}, "Options.PerSecond": {PerSecond: -1}, "Options.MaxBytes": {MaxBytes: 1},
	} {
		_, err := New(o)
		var oe *server.OptionError
		require.ErrorAs(t, err, &oe)
		require.Equal(t, field, oe.Field)
	}
	require.NotEqual(t, newInspector(t, Options{}).Token(), newInspector(t, Options{}).Token())
}

// searchServer returns a server like the quickstart's /search: it has parameters, and a limit that is never reached.
func searchServer(tb testing.TB, observers ...server.Observer) http.Handler {
	srv, err := server.New(server.Options{
		Observers:  observers,
		RateLimits: []*ratelimit.Policy{ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(1<<40))},
	})
	require.NoError(tb, err)
	srv.HandleFunc("GET /search", func(w http.ResponseWriter, req *server.Request) error {
		q, err := req.Params().Query().String("q")
		if err != nil {
			return err
		}
		if res, err := req.RateLimit().Take(); err != nil || !res.Allowed {
			return fmt.Errorf("denied: %w", err)
		}
		_, err = fmt.Fprintln(w, q)
		return err
	})
	return srv
}

// searching returns a function that sends a request to a searchServer.
func searching(tb testing.TB, observers ...server.Observer) func() {
	h, w, r := searchServer(tb, observers...), nullWriter{http.Header{}}, httptest.NewRequest("GET", "/search?q=go", nil)
	return func() {
		clear(w.h)
		h.ServeHTTP(w, r)
	}
}

type nullWriter struct{ h http.Header }

func (w nullWriter) Header() http.Header         { return w.h }
func (w nullWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w nullWriter) WriteHeader(int)             {}

func BenchmarkSearch(b *testing.B) {
	for name, search := range map[string]func(){"observer=nil": searching(b), "observer=inspector": searching(b, newInspector(b, Options{}))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				search()
			}
		})
	}
}

// A request that is counted and not recorded allocates only what the server keeps for observers.
func TestAttachedAllocations(t *testing.T) {
	none := testing.AllocsPerRun(2000, searching(t))
	attached := testing.AllocsPerRun(2000, searching(t, newInspector(t, Options{PerSecond: 1, Slow: time.Hour})))
	t.Logf("%v without, %v with the inspector", none, attached)
	require.LessOrEqual(t, attached-none, 4.0)
}
