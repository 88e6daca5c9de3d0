package layer_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// This example puts a deny list and a deny cache around a store.
func ExampleNew() {
	store, err := memstore.New(memstore.Options{}) // or redisstore.New
	if err != nil {
		log.Fatal(err)
	}
	layered, err := layer.New(store, layer.Options{
		Lists:     &layer.ListsOptions{Deny: layer.List{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}}},
		DenyCache: &layer.DenyCacheOptions{},
	})
	if err != nil {
		log.Fatal(err)
	}
	perMinute := ratelimit.GCRA(10, time.Minute)
	limiter, err := ratelimit.NewLimiter(layered, perMinute)
	if err != nil {
		log.Fatal(err)
	}
	for _, key := range []string{"search:192.0.2.1", "search:203.0.113.7"} {
		res, err := limiter.Take(context.Background(), key, 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %v, by the %v\n", key, res.Allowed, res.Source)
	}
	// Output:
	// search:192.0.2.1: true, by the store
	// search:203.0.113.7: false, by the deny list
}

// This example tries out a lower limit as a shadow rule before it is enforced.
func ExampleNew_shadow() {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	shadow, err := layer.New(store, layer.Options{Shadow: &layer.ShadowOptions{
		Match: func(op ratelimit.Op) bool { return op.Rule.Name() == "lower" },
	}})
	if err != nil {
		log.Fatal(err)
	}
	reported := ratelimit.Observe(shadow, func(_ context.Context, e ratelimit.Event) {
		if e.Result.Source == ratelimit.FromShadow && e.Result.Violated {
			fmt.Printf("%s would be denied by %v\n", e.Op.Key, e.Op.Rule)
		}
	})
	rules := []ratelimit.Rule{
		ratelimit.FixedWindow(10, time.Hour),
		ratelimit.FixedWindow(2, time.Hour).WithName("lower"),
	}
	both, err := ratelimit.NewLimiter(reported, rules...)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		v, err := both.Take(context.Background(), "ada", 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(v.Allowed, v.Remaining)
	}
	// Output:
	// true 9
	// true 8
	// ada would be denied by window(lower: 2 per 1h0m0s)
	// true 7
}
