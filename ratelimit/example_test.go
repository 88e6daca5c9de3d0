package ratelimit_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

func ExampleLimiter() {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		panic(err)
	}
	logins, err := ratelimit.NewLimiter(store, ratelimit.PerMinute(3))
	if err != nil {
		panic(err)
	}
	for range 4 {
		res, err := logins.Take(context.Background(), "login:ada", 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(res.Allowed, res.Remaining)
	}
	// Output:
	// true 2
	// true 1
	// true 0
	// false 0
}

// A login is counted by address and by name. The first policy stops an address that tries many names. The second
// policy stops many addresses that try the same name.
func ExampleNewPolicy() {
	byAddress := ratelimit.NewPolicy("login-address", ratelimit.ByIP(), ratelimit.PerMinute(10), ratelimit.PerDay(100))
	byName := ratelimit.NewPolicy("login-name", ratelimit.ByHeader("X-User"), ratelimit.PerHour(20).WithBlock(ratelimit.Block{After: 5, For: time.Hour}))
	fmt.Println(ratelimit.Check(byAddress, byName))

	fmt.Println(ratelimit.Check(ratelimit.NewPolicy("login", ratelimit.ByIP(), ratelimit.PerMinute(0))))
	// Output:
	// <nil>
	// ratelimit: policy "login": Rules[0]: PerMinute.Limit is 0, want 1 to 2^53
}

// A server calls Provide for the policies in its Options.RateLimits. Other programs call Provide themselves, and then use
// the policies with the context of a request.
func ExampleProvide() {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		panic(err)
	}
	reg := reqctx.NewRegistry(reqctx.Options{})
	search := ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(1))
	ratelimit.Provide(reg, store, search)

	for range 2 {
		c := reqctx.New(context.Background(), reg)
		c.SetRequest(httptest.NewRequest("GET", "/", nil))
		res, err := search.Take(c)
		fmt.Println(res.Allowed, err)
		if err := c.Finish(); err != nil {
			panic(err)
		}
	}
	// Output:
	// true <nil>
	// false <nil>
}
