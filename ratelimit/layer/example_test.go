package layer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// Calls of somebody else's API, who allows 20 a second: nobody is denied, and the calls
// go out one every 50 ms.
func ExampleQueue() {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		panic(err)
	}
	rule := ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 20, Per: time.Second, Burst: 1}))
	queue, err := layer.NewQueue(store, rule, layer.QueueOptions{MaxWaiting: 100})
	if err != nil {
		panic(err)
	}
	defer queue.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	began := time.Now()
	for range 3 {
		if _, err := queue.Wait(ctx, "api.example.com", 1); err != nil {
			panic(err)
		}
		fmt.Println("called")
	}
	fmt.Println("at the pace:", time.Since(began) >= 100*time.Millisecond)
	// Output:
	// called
	// called
	// called
	// at the pace: true
}

// Tokens of a language model: an answer may be long, and most are short.
func ExampleReservations() {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		panic(err)
	}
	perHour := ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Limit: 10_000, Per: time.Hour, Interval: time.Minute, Span: time.Hour}))
	tokens, err := layer.NewReservations(store, perHour, layer.ReservationOptions{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, answer := range []int64{350, 1200} {
		reserved, err := tokens.Reserve(ctx, "ada", 1000)
		if err != nil {
			panic(err)
		}
		if err := reserved.Result().Err(); err != nil {
			panic(err) // a 429, with Retry-After
		}
		settled, err := reserved.Commit(ctx, answer) // or Cancel, if there was no answer
		if err != nil {
			panic(err)
		}
		fmt.Println(settled.Charged, "tokens, given back", settled.Returned, "charged beyond", settled.Added)
	}
	// Output:
	// 350 tokens, given back 650 charged beyond 0
	// 1200 tokens, given back 0 charged beyond 200
}
