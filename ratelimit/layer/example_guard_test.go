package layer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// A store with a deny cache and failover always answers in time.
func Example() {
	store, err := memstore.New(memstore.Options{}) // or redisstore.New
	if err != nil {
		panic(err)
	}
	guarded, err := layer.New(store, layer.Options{
		DenyCache: &layer.DenyCacheOptions{},
		Failover:  &layer.FailoverOptions{Mode: layer.Local, Replicas: 3},
	})
	if err != nil {
		panic(err)
	}
	twoPerHour := ratelimit.SlidingLog(2, time.Hour)
	limiter, err := ratelimit.NewLimiter(guarded, twoPerHour)
	if err != nil {
		panic(err)
	}
	for range 3 {
		res, err := limiter.Take(context.Background(), "192.0.2.1", 1)
		fmt.Println(res.Allowed, res.Source, err)
	}
	// Output:
	// true store <nil>
	// true store <nil>
	// false deny cache <nil>
}

// If the store fails, logins are denied. All other rules allow a share of their limits.
func ExampleNew_failoverOptions_modeFor() {
	login := ratelimit.GCRA(5, time.Minute).WithName("login")
	search := ratelimit.GCRA(60, time.Minute).WithName("search")
	f, err := layer.New(gone{}, layer.Options{Failover: &layer.FailoverOptions{
		Replicas: 4,
		ModeFor: func(r ratelimit.Rule) layer.Mode {
			if r.Name() == "login" {
				return layer.Closed
			}
			return layer.Local
		},
	}})
	if err != nil {
		panic(err)
	}
	for _, r := range []ratelimit.Rule{login, search} {
		res, err := f.DoOne(context.Background(), ratelimit.Op{Rule: r, Key: "ada", N: 1, Kind: ratelimit.Take})
		fmt.Println(res.Allowed, res.Remaining, errors.Is(err, ratelimit.ErrStore))
	}
	// Output:
	// false 0 true
	// true 14 false
}
