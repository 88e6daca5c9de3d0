package memstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// A user has a counter for each of the two rules, so that there is room for 125,000 users.
func ExampleNew() {
	store, err := memstore.New(memstore.Options{MaxKeys: 250_000})
	if err != nil {
		log.Fatal(err)
	}
	limit, err := ratelimit.NewLimiter(store, ratelimit.PerSecond(3), ratelimit.PerDay(1000))
	if err != nil {
		log.Fatal(err)
	}
	res, err := limit.Take(context.Background(), "user:ada", 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Allowed, store.Len(), "counters")
	// Output: true 2 counters
}
