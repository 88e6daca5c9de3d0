package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/delay"
	"github.com/lazyreq/lazyreq/bench/harness"
)

// Suite returns the suite "server". The program that runs it plays its [Roles].
func Suite() harness.Suite {
	return harness.Suite{
		Name:  "server",
		About: "session, parameters and rate limit: lazy properties against middleware on every route",
		Run:   run,
	}
}

// setting is a case: a share of requests that need session and limiter, and what Redis' answers
// are delayed by.
type setting struct {
	percent int
	delay   time.Duration
}

func (c setting) String() string {
	return fmt.Sprintf("%d%%/%gms", c.percent, float64(c.delay)/float64(time.Millisecond))
}

const slow = 200 * time.Microsecond

var (
	allCases   = []setting{{0, 0}, {10, 0}, {10, slow}, {10, 5 * slow}, {50, 0}, {50, slow}, {100, 0}, {100, slow}}
	quickCases = []setting{{0, 0}, {10, slow}, {100, slow}}
)

// metrics are what a round gives.
var metrics = []harness.Metric{
	{Name: throughput, Unit: "req/s", More: true},
	{Name: p50, Unit: "ms"},
	{Name: p99, Unit: "ms", Tail: true},
	{Name: commands, Unit: "commands"},
	{Name: processor, Unit: "µs"},
}

// The names of the metrics.
const (
	throughput = "throughput"
	p50        = "p50"
	p99        = "p99"
	commands   = "redis commands per request"
	processor  = "cpu per request"
)

// plan is how a run goes.
type plan struct {
	cases   []setting
	rounds  int
	warmUp  time.Duration
	measure time.Duration
}

func newPlan(quick bool) plan {
	if quick {
		return plan{quickCases, 5, 100 * time.Millisecond, 500 * time.Millisecond}
	}
	return plan{allCases, 5, 300 * time.Millisecond, 3 * time.Second}
}

func run(ctx context.Context, r *harness.Run) error {
	if child.IsChild() {
		return errors.New("this is a child of the suite: the program does not call child.Main first")
	}
	p := newPlan(r.Quick)
	b, err := openBench(ctx, p)
	switch {
	case errors.Is(err, harness.ErrMissing):
		return reportMissing(ctx, r, p, err)
	case err != nil:
		return err
	}
	defer b.close()
	for _, c := range p.cases {
		if err := b.compare(ctx, r, c); err != nil {
			return err
		}
	}
	return nil
}

// reportMissing reports all cases as impossible on this machine.
func reportMissing(ctx context.Context, r *harness.Run, p plan, why error) error {
	for _, c := range p.cases {
		var contenders []harness.Contender
		for _, s := range stacks {
			contenders = append(contenders, harness.Contender{Name: s.name, Ours: s.name == ours,
				Start: func(context.Context) (harness.Instance, error) { return nil, why }})
		}
		if err := r.Compare(ctx, c.String(), p.rounds, metrics, contenders); err != nil {
			return err
		}
	}
	return nil
}

// bench is what all cases share: the machine and its Redis.
type bench struct {
	plan
	stack, rest child.CPUs
	db          *database
}

func openBench(ctx context.Context, p plan) (b *bench, err error) {
	b = &bench{plan: p}
	all, err := child.AllCPUs()
	if err != nil {
		return nil, err
	}
	b.stack, b.rest = all.Split(len(all) / 2)
	b.db, err = startRedis(ctx, b.rest)
	return b, err
}

func (b *bench) close() { b.db.close() }

// compare runs a case. A delay needs a proxy; without one, the stacks talk to Redis
// itself.
func (b *bench) compare(ctx context.Context, r *harness.Run, c setting) error {
	addr := b.db.addr
	if c.delay > 0 {
		p, err := delay.Start(addr, c.delay, b.rest)
		if err != nil {
			return err
		}
		defer func() { _ = p.Close() }()
		addr = p.Addr
	}
	var contenders []harness.Contender
	for _, s := range stacks {
		contenders = append(contenders, harness.Contender{
			Name: s.name,
			Ours: s.name == ours,
			Start: func(ctx context.Context) (harness.Instance, error) {
				return b.start(ctx, s, addr, c.percent)
			},
		})
	}
	return r.Compare(ctx, c.String(), b.rounds, metrics, contenders)
}
