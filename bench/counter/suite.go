package counter

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/internal/redisproc"
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
	dir, err := os.MkdirTemp("", "bench-counter-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := redisproc.Start(dir)
	if err != nil {
		return err
	}
	defer server.Stop()
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2, DisableIdentity: true})
	defer client.Close()

	contenders := []struct {
		name string
		ours bool
		make func(context.Context) (counter, error)
	}{
		{"lazyreq", true, func(context.Context) (counter, error) { return newOurs(client) }},
		{"redback", false, func(ctx context.Context) (counter, error) { return newRedback(ctx, server.Addr) }},
	}
	r.Plan(len(cases) * len(contenders) * rounds)
	for _, l := range cases {
		var list []harness.Contender
		for _, c := range contenders {
			list = append(list, harness.Contender{Name: c.name, Ours: c.ours, Start: func(ctx context.Context) (harness.Instance, error) {
				made, err := c.make(ctx)
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
}
