package reservation_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/reservation"
)

// A request to a language model reserves 1,000 tokens, and is charged for the tokens that its answer needed.
func Example() {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		panic(err)
	}
	perHour := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 10_000, Per: time.Hour, Interval: time.Minute, Span: time.Hour})
	tokens, err := reservation.New(store, perHour, reservation.Options{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, used := range []int64{350, 1200} {
		reserved, err := tokens.Reserve(ctx, "ada", 1000)
		if err != nil {
			panic(err)
		}
		if err := reserved.Result().Err(); err != nil {
			panic(err) // in a handler, return this error to answer with a 429
		}
		settled, err := reserved.Commit(ctx, used) // if there is no answer, call Cancel
		if err != nil {
			panic(err)
		}
		fmt.Println(settled.Charged, "tokens charged,", settled.Returned, "given back,", settled.Added, "added")
	}
	// Output:
	// 350 tokens charged, 650 given back, 0 added
	// 1200 tokens charged, 0 given back, 200 added
}
