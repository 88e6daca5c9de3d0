package counter

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/rig"
)

const (
	inFlight = 50
	subjects = 64
	span     = 595 * time.Second // the longest interval that both can count
)

// load is what is done in a round.
type load struct {
	name     string
	op       string // add, count or addCount
	interval time.Duration
}

var cases = []load{
	{"add", "add", 0},
	{"count(20s)", "count", 20 * time.Second},
	{"count(595s)", "count", span},
	{"addCount(20s)", "addCount", 20 * time.Second},
}

var metrics = []harness.Metric{
	{Name: "throughput", Unit: "ops/s", More: true},
	{Name: "redis cpu per op", Unit: "µs"},
	{Name: "client cpu per op", Unit: "µs"},
}

// contender makes a counter on the Redis at addr, whose client it may use.
type contender struct {
	name string
	ours bool
	make func(ctx context.Context, addr string, client *redis.Client) (counter, error)
}

var contenders = []contender{
	{"lazyreq", true, func(_ context.Context, _ string, client *redis.Client) (counter, error) { return newOurs(client) }},
	{"redback", false, func(ctx context.Context, addr string, _ *redis.Client) (counter, error) { return newRedback(ctx, addr) }},
}

// Suite returns the suite.
func Suite() harness.Suite {
	return harness.Suite{
		Name:  "counter",
		About: fmt.Sprintf("bucket counters on one Redis, %d calls in flight, %d subjects", inFlight, subjects),
		Run:   run,
	}
}

func run(ctx context.Context, r *harness.Run) error {
	rounds, length := 7, 2*time.Second
	if r.Quick {
		rounds, length = 5, 700*time.Millisecond
	}
	return rig.WithRedis(func(addr string, client *redis.Client) error {
		for _, l := range cases {
			var list []harness.Contender
			for _, c := range contenders {
				list = append(list, harness.Contender{Name: c.name, Ours: c.ours, Start: func(ctx context.Context) (harness.Instance, error) {
					made, err := c.make(ctx, addr, client)
					if err != nil {
						return nil, err
					}
					return &instance{counter: made, load: l, length: length, redis: client}, nil
				}})
			}
			if err := r.Compare(ctx, l.name, rounds, metrics, list); err != nil {
				return err
			}
		}
		return nil
	})
}
