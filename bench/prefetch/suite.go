package prefetch

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/delay"
	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/rig"
)

const (
	redisLatency    = time.Millisecond     // added to each reply of Redis
	propertyLatency = 2 * time.Millisecond // of each of the two other properties
	inFlight        = 4
)

var metrics = []harness.Metric{
	{Name: "p50", Unit: "ms"},
	{Name: "p99", Unit: "ms", Tail: true},
	{Name: "redis commands per request"},
	{Name: "cpu per request", Unit: "µs"},
}

// Suite returns the suite.
func Suite() harness.Suite {
	return harness.Suite{
		Name: "prefetch",
		About: fmt.Sprintf("a route that reads session, account and flags; Redis %v away, account and flags %v each, %d requests in flight",
			redisLatency, propertyLatency, inFlight),
		Run: run,
	}
}

func run(ctx context.Context, r *harness.Run) error {
	rounds, length := 11, 2*time.Second
	if r.Quick {
		rounds, length = 5, 500*time.Millisecond
	}
	return rig.WithRedis(func(addr string, client *redis.Client) error {
		cpus, err := child.AllCPUs()
		if err != nil {
			return err
		}
		far, err := delay.Start(addr, redisLatency, cpus)
		if err != nil {
			return err
		}
		defer func() { _ = far.Close() }()
		contenders := func(routes []route) (list []harness.Contender) {
			for i, route := range routes {
				list = append(list, harness.Contender{Name: route.name, Ours: i == 0, Start: func(ctx context.Context) (harness.Instance, error) {
					return open(ctx, far.Addr, client, route.path, length)
				}})
			}
			return list
		}
		if err := r.Compare(ctx, "reads all", rounds, metrics, contenders(routes)); err != nil {
			return err
		}
		if err := r.Compare(ctx, "requires", rounds, metrics, contenders(requiring)); err != nil {
			return err
		}
		var without []harness.Contender
		for i, p := range programs {
			without = append(without, harness.Contender{Name: p.name, Ours: i == 0, Start: func(context.Context) (harness.Instance, error) {
				return p.open(far.Addr, min(length, harness.FullRound))
			}})
		}
		return r.Compare(ctx, "another route", rounds, harness.LoopMetrics, without)
	})
}
