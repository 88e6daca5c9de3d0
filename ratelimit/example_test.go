package ratelimit_test

import (
	"context"
	"fmt"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
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
