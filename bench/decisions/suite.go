package decisions

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/internal/redisproc"
)

const many = 16384 // keys

var metrics = []harness.Metric{
	{Name: "throughput", Unit: "decisions/s", More: true},
	{Name: "allocations per decision", Unit: ""},
	{Name: "redis commands per decision", Unit: ""},
	{Name: "redis cpu per decision", Unit: "µs"},
	{Name: "client cpu per decision", Unit: "µs"},
}

var idle = []harness.Metric{
	{Name: "mean latency", Unit: "µs"},
	{Name: "p50 latency", Unit: "µs"},
	{Name: "p99 latency", Unit: "µs"},
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
	contenders []contender
}

var groups = []group{
	{"plain", []string{"many", "hot"}, slices.Concat([]contender{ours("store", window, store), ours("store, GCRA", gcra, store)}, peers, floors)},
}

// Suite returns the suite.
func Suite() harness.Suite {
	return harness.Suite{
		Name:  "redis",
		About: fmt.Sprintf("decisions on one Redis, by the number of callers; hot: one key, many: %d keys", many),
		Run:   run,
	}
}

// plan is how long a run takes.
type plan struct {
	callers        []int
	rounds, idling int
	length         time.Duration
}

func planned(quick bool) plan {
	if quick {
		return plan{callers: []int{64}, rounds: 5, idling: 5, length: 60 * time.Millisecond}
	}
	return plan{callers: []int{1, 8, 64, 256}, rounds: 5, idling: 15, length: 400 * time.Millisecond}
}

func run(ctx context.Context, r *harness.Run) error {
	dir, err := os.MkdirTemp("", "bench-redis-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := redisproc.Start(dir)
	if err != nil {
		return err
	}
	defer server.Stop()
	client := newClient(server.Addr)
	defer client.Close()

	p := planned(r.Quick)
	for _, g := range groups {
		r.Plan(len(p.callers) * len(g.loads) * len(g.contenders) * p.rounds)
	}
	for _, g := range groups {
		for _, keys := range g.loads {
			for _, callers := range p.callers {
				l := load{name: fmt.Sprintf("%s/%s/%d", g.name, keys, callers), size: 1, callers: callers}
				if keys == "many" {
					l.size = many
				}
				list := g.list(server.Addr, client, l, p.length)
				if err := r.Compare(ctx, l.name, p.rounds, metrics, list); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// list returns the contenders of a case.
func (g *group) list(addr string, client *redis.Client, l load, length time.Duration) []harness.Contender {
	var list []harness.Contender
	for i, c := range g.contenders {
		list = append(list, harness.Contender{Name: c.name, Ours: i == 0, Start: func(context.Context) (harness.Instance, error) {
			return open(c, addr, client, l, length)
		}})
	}
	return list
}
