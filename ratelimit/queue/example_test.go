package queue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/queue"
)

// An API allows 20 calls a second. The queue sends a call every 50 ms, so that no call is denied.
func Example() {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		panic(err)
	}
	rule := ratelimit.GCRA(20, time.Second).WithBurst(1)
	calls, err := queue.New(store, rule, queue.Options{MaxWaiting: 100})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	began := time.Now()
	for range 3 {
		if _, err := calls.Wait(ctx, "api.example.com", 1); err != nil {
			panic(err)
		}
		fmt.Println("called")
	}
	fmt.Println("paced:", time.Since(began) >= 100*time.Millisecond)
	// Output:
	// called
	// called
	// called
	// paced: true
}
