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
		rounds, length = 5, 400*time.Millisecond
	}
	return rig.WithRedis(func(addr string, client *redis.Client) error {
		for _, l := range cases {
			if err := r.Compare(ctx, l.name, rounds, metrics, l.contenders(addr, client, length)); err != nil {
				return err
			}
		}
		return nil
	})
}

// leastOfTakes is the number of adds or counts for each take of a unit that a short form must
// reach.
const leastOfTakes = 0.6

// unreached is a limit that the takes of a round don't reach.
const unreached = 1_000_000_000

// contenders returns the contenders of a case on the Redis at addr. client may be used as well.
func (l load) contenders(addr string, client *redis.Client, length time.Duration) []harness.Contender {
	start := func(make func(context.Context) (counter, error)) func(context.Context) (harness.Instance, error) {
		return func(ctx context.Context) (harness.Instance, error) {
			made, err := make(ctx)
			return &instance{counter: made, load: l, length: length, redis: client}, err
		}
	}
	list := []harness.Contender{
		{Name: "lazyreq", Ours: true, Start: start(func(context.Context) (counter, error) { return newOurs(client, counting) })},
		{Name: "redback", Start: start(func(ctx context.Context) (counter, error) { return newRedback(ctx, addr) })},
	}
	if l.op != "addCount" {
		list = append(list, harness.Contender{Name: "take", Least: leastOfTakes, Start: func(context.Context) (harness.Instance, error) {
			return newTakes(client, length, unreached)
		}})
	}
	return list
}
