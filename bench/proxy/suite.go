package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
)

// Suite returns the suite "proxy". The program that runs it plays its [Roles].
func Suite() harness.Suite {
	return harness.Suite{
		Name:    "proxy",
		About:   "processor time of a proxied request of 1 KB, 64 connections, on one processor that is saturated",
		Program: "cmd/ratelimit-proxy",
		Run:     run,
	}
}

// metrics are the results of a round.
var metrics = []harness.Metric{
	perRequest,
	{Name: throughput, Unit: "req/s", More: true},
	{Name: p50, Unit: "ms"},
	{Name: p99, Unit: "ms", Tail: true},
	{Name: busy, Unit: "%", More: true},
}

// perRequest is the suite's main metric.
var perRequest = harness.Metric{Name: processor, Unit: "µs"}

// The names of the metrics.
const (
	processor  = "cpu per request"
	throughput = "throughput"
	p50        = "p50"
	p99        = "p99"
	busy       = "busy"
)

// The names of the cases.
const (
	none   = "none"
	ample  = "limit"
	denied = "denied"
	shared = "redis"
)

// quotients are the published ratios between cases or contenders.
var quotients = []struct {
	name   string
	of, by harness.Ref
}{
	{"none/bare", harness.Ref{Case: none, Contender: ours}, harness.Ref{Case: none, Contender: bare}},
	{"limit/bare", harness.Ref{Case: ample, Contender: ours}, harness.Ref{Case: none, Contender: bare}},
	{"redis/bare", harness.Ref{Case: shared, Contender: ours}, harness.Ref{Case: none, Contender: bare}},
	{"denied/limit", harness.Ref{Case: denied, Contender: ours}, harness.Ref{Case: ample, Contender: ours}},
	{"limit/caddy", harness.Ref{Case: ample, Contender: ours}, harness.Ref{Case: ample, Contender: caddy}},
	{"denied/caddy", harness.Ref{Case: denied, Contender: ours}, harness.Ref{Case: denied, Contender: caddy}},
	{"limit/nginx", harness.Ref{Case: ample, Contender: ours}, harness.Ref{Case: ample, Contender: nginx}},
	{"denied/nginx", harness.Ref{Case: denied, Contender: ours}, harness.Ref{Case: denied, Contender: nginx}},
}

// plan configures a run.
type plan struct {
	rounds  int
	warmUp  time.Duration
	measure time.Duration
}

func newPlan(quick bool) plan {
	if quick {
		return plan{3, 100 * time.Millisecond, 250 * time.Millisecond}
	}
	return plan{15, 300 * time.Millisecond, 1200 * time.Millisecond}
}

func run(ctx context.Context, r *harness.Run) error {
	if child.IsChild() {
		return errors.New("this is a child of the suite: the program does not call child.Main first")
	}
	p := newPlan(r.Quick)
	b, err := openBench(ctx, p)
	defer b.close()
	if err != nil && !errors.Is(err, harness.ErrMissing) {
		return err
	}
	if b.missing = err; err == nil {
		b.buildCaddy(ctx)
	}
	return b.compare(ctx, r, b.allCases(contenders))
}

// compare measures all cases and computes the ratios.
func (b *bench) compare(ctx context.Context, r *harness.Run, cases []harness.Case) error {
	if err := r.CompareAll(ctx, b.rounds, metrics, cases); err != nil {
		return err
	}
	for _, q := range quotients {
		r.Quotient(q.name, perRequest, q.of, q.by)
	}
	return nil
}

// allCases returns the contenders of each case.
func (b *bench) allCases(by []contender) []harness.Case {
	cases := []harness.Case{{Name: none}, {Name: ample}, {Name: denied}, {Name: shared}}
	for i := range cases {
		for _, c := range by {
			s, ok := c.setups[cases[i].Name]
			if !ok {
				continue
			}
			cases[i].Contenders = append(cases[i].Contenders, harness.Contender{
				Name: c.name,
				Ours: c.name == ours,
				Start: func(ctx context.Context) (harness.Instance, error) {
					return b.startContender(ctx, c, s)
				},
			})
		}
	}
	return cases
}
