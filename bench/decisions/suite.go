package decisions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/rig"
	"github.com/lazyreq/lazyreq/ratelimit"
)

const many = 16384 // keys

var metrics = append([]harness.Metric{
	{Name: "throughput", Unit: "decisions/s", More: true},
	{Name: "allocations per decision", Unit: ""},
	{Name: "redis commands per decision", Unit: ""},
	{Name: "redis cpu per decision", Unit: "µs"},
	{Name: "network bytes per decision", Unit: ""},
	{Name: "client cpu per decision", Unit: "µs"},
}, idle[1:]...)

var idle = []harness.Metric{
	{Name: "mean latency", Unit: "µs"},
	{Name: "p50 latency", Unit: "µs"},
	{Name: "p99 latency", Unit: "µs", Tail: true},
}

// load is what a case asks for.
type load struct {
	name    string
	size    int // number of keys
	callers int
	timed   bool // measures each decision
}

// group is cases that have the same contenders, the first of them ours.
type group struct {
	name       string
	loads      []string // many, hot
	contenders []Contender
	timed      bool // measures each decision
}

var both = []string{"many", "hot"}

var groups = []group{
	{"plain", both, slices.Concat([]Contender{Ours("store", ratelimit.FixedWindow, DefaultStore), Ours("store, GCRA", ratelimit.GCRA, DefaultStore), Ours("one call each", ratelimit.FixedWindow, unbatchedStore)}, Peers, floors), true},
	{"lease", both[1:], slices.Concat([]Contender{Ours("lease", ratelimit.FixedWindow, PrepaidStore), Ours("store", ratelimit.FixedWindow, DefaultStore)}, Peers), false},
}

// alone is one caller's latency.
var alone = group{name: "idle", contenders: slices.Concat([]Contender{Ours("store", ratelimit.FixedWindow, DefaultStore), Ours("one call each", ratelimit.FixedWindow, unbatchedStore)}, Peers)}

// Suite returns the suite.
func Suite() harness.Suite {
	return harness.Suite{
		Name:    "redis",
		About:   fmt.Sprintf("decisions on one Redis, by the number of callers; hot: one key, many: %d keys", many),
		Package: "decisions",
		Run:     run,
	}
}

// plan is how long a run takes.
type plan struct {
	callers        []int
	rounds, idling int
	length         time.Duration
}

func newPlan(quick bool) plan {
	if quick {
		return plan{callers: []int{64}, rounds: 5, idling: 5, length: 100 * time.Millisecond}
	}
	return plan{callers: []int{1, 2, 4, 8, 64, 256}, rounds: 5, idling: 15, length: 300 * time.Millisecond}
}

func run(ctx context.Context, r *harness.Run) error {
	p := newPlan(r.Quick)
	return rig.WithRedis(func(addr string, client *redis.Client) error {
		for _, g := range groups {
			if err := g.run(ctx, r, p, addr, client); err != nil {
				return err
			}
		}
		one := load{name: alone.name, size: many, callers: 1, timed: true}
		return r.Compare(ctx, one.name, p.idling, idle, alone.newContenders(addr, client, one, p.length))
	})
}

// run runs the cases of a group.
func (g *group) run(ctx context.Context, r *harness.Run, p plan, addr string, client *redis.Client) error {
	for _, keys := range g.loads {
		for _, callers := range p.callers {
			l := load{name: fmt.Sprintf("%s/%s/%d", g.name, keys, callers), size: 1, callers: callers, timed: g.timed}
			if keys == "many" {
				l.size = many
			}
			if err := r.Compare(ctx, l.name, p.rounds, metrics, g.newContenders(addr, client, l, p.length)); err != nil {
				return err
			}
		}
	}
	return nil
}

// newContenders returns the contenders of a case.
func (g *group) newContenders(addr string, client *redis.Client, l load, length time.Duration) []harness.Contender {
	var list []harness.Contender
	for i, c := range g.contenders {
		list = append(list, harness.Contender{Name: c.Name, Ours: i == 0, Start: func(context.Context) (harness.Instance, error) {
			return openInstance(c, addr, client, l, length)
		}})
	}
	return list
}
