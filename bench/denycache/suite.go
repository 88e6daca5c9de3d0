package denycache

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
	subjects = 5
	limit    = 5
	per      = time.Second
)

var metrics = []harness.Metric{
	{Name: "throughput", Unit: "decisions/s", More: true},
	{Name: "mean latency", Unit: "µs"},
	{Name: "p50 latency", Unit: "µs"},
	{Name: "p99 latency", Unit: "µs", Tail: true},
	{Name: "store calls per decision", Unit: "%"},
	{Name: "server cpu per decision", Unit: "µs"},
}

// load asks a subject for units.
type load func(ctx context.Context, s subject, round string, length time.Duration) (sample, error)

// steady is how many requests a second hey sends in the case that is so named: those
// of the benchmark that rate-limiter-flexible published.
const steady = 2000

// cases each have a load, and may need something.
var cases = []struct {
	name string
	load load
	need func() error
}{
	{"inprocess", inProcessLoad, func() error { return nil }},
	{"http", httpLoad(0), requireHey},
	{fmt.Sprintf("http/%d", steady), httpLoad(steady), requireHey},
}

func inProcessLoad(ctx context.Context, s subject, round string, length time.Duration) (sample, error) {
	return s.run(ctx, round, length)
}

// contender makes a subject; client is for questions.
type contender struct {
	name string
	ours bool
	make func(ctx context.Context, addr string, client *redis.Client) (subject, error)
}

var contenders = []contender{
	{"lazyreq", true, newOurs(withDenyCache)},
	{"lazyreq, plain", false, newOurs(withoutLayers)},
	{"rate-limiter-flexible", false, newFlexible("block")},
	{"rate-limiter-flexible, plain", false, newFlexible("plain")},
}

// Suite returns the suite.
func Suite() harness.Suite {
	return harness.Suite{
		Name:  "denycache",
		About: fmt.Sprintf("denials: %d keys of %d units in %v, %d calls in flight, one Redis", subjects, limit, per, inFlight),
		Run:   run,
	}
}

func run(ctx context.Context, r *harness.Run) error {
	rounds, length := 5, 2500*time.Millisecond
	if r.Quick {
		length = 500 * time.Millisecond
	}
	return rig.WithRedis(func(addr string, client *redis.Client) error {
		for _, c := range cases {
			var list []harness.Contender
			for _, who := range contenders {
				list = append(list, harness.Contender{Name: who.name, Ours: who.ours, Start: func(ctx context.Context) (harness.Instance, error) {
					if err := c.need(); err != nil {
						return nil, err
					}
					made, err := who.make(ctx, addr, client)
					if err != nil {
						return nil, err
					}
					return &instance{subject: made, load: c.load, length: length, redis: client}, nil
				}})
			}
			// A case without what it needs stands in the results as missing.
			if err := r.Compare(ctx, c.name, rounds, metrics, list); err != nil && c.need() == nil {
				return err
			}
		}
		return nil
	})
}
