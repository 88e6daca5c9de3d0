package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

func perMinute(limit int64) ratelimit.Rule {
	return ratelimit.PerMinute(limit)
}

func memoryStore() ratelimit.Store {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		panic(err)
	}
	return store
}

// The middleware limits a whole handler of net/http.
func ExampleMiddleware() {
	policy := ratelimit.NewPolicy("api", ratelimit.ByIP(), perMinute(2))
	limited, err := ratelimit.Middleware(memoryStore(), policy, ratelimit.MiddlewareOptions{})
	if err != nil {
		panic(err)
	}
	api := limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, err := policy.Take(r.Context()) // returns the result of the middleware's take
		fmt.Fprintln(w, res.Remaining, "left", err)
	}))
	for range 3 {
		rec := httptest.NewRecorder()
		api.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		fmt.Print(rec.Code, " ", rec.Header().Get("RateLimit-Policy"), " ", rec.Body.String()[:6], "\n")
	}
	// Output:
	// 200 "api";q=2;w=60 1 left
	// 200 "api";q=2;w=60 0 left
	// 429 "api";q=2;w=60 {"deta
}

// The key function finds the address of a client behind a proxy at 10.0.0.1, which appends to X-Forwarded-For.
func ExampleIPOptions() {
	byClient, err := ratelimit.IPOptions{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Header:         "X-Forwarded-For",
	}.Key()
	if err != nil {
		panic(err)
	}
	for _, peer := range []string{"10.0.0.1:80", "192.0.2.7:80"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-For", "1.1.1.1, 203.0.113.9, 10.0.0.2") // the client has invented 1.1.1.1
		fmt.Println(byClient(context.Background(), r))
	}
	// Output:
	// 203.0.113.9 <nil>
	// 192.0.2.7 <nil>
}

func ExampleFirstOf() {
	key := ratelimit.FirstOf(ratelimit.ByHeader("X-Api-Key"), ratelimit.ByAll(ratelimit.ByIP(), ratelimit.ByPath()))
	r := httptest.NewRequest("GET", "/search", nil)
	fmt.Println(key(context.Background(), r))
	r.Header.Set("X-Api-Key", "secret")
	fmt.Println(key(context.Background(), r))
	// Output:
	// 1:9:192.0.2.1,7:/search, <nil>
	// 0:sha256-0ksRQSC0LT82HyDgYcTzng <nil>
}

// runHandler runs a handler as a server would.
func runHandler(reg *reqctx.Registry, header string, handler func(ctx context.Context)) {
	c, h := reqctx.New(context.Background(), reg), http.Header{}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Plan", header)
	c.SetRequest(r)
	handler(c)
	if err := c.Commit(http.StatusOK, h); err != nil {
		panic(err)
	}
	if line := h.Get("RateLimit-Policy"); line != "" {
		fmt.Println(line)
	}
	if err := c.Finish(); err != nil {
		panic(err)
	}
}

// Each plan has its own rules. The rules share the counter, so that a client does not get a new quota with a new
// plan.
func ExamplePolicy_tiers() {
	free := perMinute(60)
	pro := free.WithLimit(6000)
	plans := map[string][]ratelimit.Rule{"pro": {pro}}
	reg := reqctx.NewRegistry(reqctx.Options{})
	api := &ratelimit.Policy{
		Name:  "api",
		Rules: []ratelimit.Rule{free},
		RulesFor: func(_ context.Context, r *http.Request) ([]ratelimit.Rule, error) {
			return plans[r.Header.Get("X-Plan")], nil // a real program would look up the user's plan
		},
		Key: ratelimit.ByIP(),
	}
	ratelimit.Provide(reg, memoryStore(), api)
	for _, plan := range []string{"", "pro"} {
		runHandler(reg, plan, func(ctx context.Context) {
			res, err := api.Take(ctx)
			fmt.Println(res.Remaining, err)
		})
	}
	// Output:
	// 59 <nil>
	// "api";q=60;w=60
	// 5998 <nil>
	// "api";q=6000;w=60
}
