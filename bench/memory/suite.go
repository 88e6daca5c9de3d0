package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/bench/harness"
)

var metrics = []harness.Metric{
	{Name: "time per decision", Unit: "ns"}, // of all processors together: the elapsed time by the number of decisions
	{Name: "allocations per decision", Exact: true},
	{Name: "memory per key", Unit: "bytes"},
}

// load describes the takes of a case.
type load struct {
	name  string
	keys  int
	fresh bool // each take has a key of its own
	procs int  // GOMAXPROCS and the number of goroutines
}

// loads returns the cases for a number of processors.
func loads(procs int) []load {
	return []load{
		{fmt.Sprintf("one key/%d", procs), 1, false, procs},
		{fmt.Sprintf("16k keys/%d", procs), 16 << 10, false, procs},
		{fmt.Sprintf("1M keys/%d", procs), 1 << 20, false, procs},
		{fmt.Sprintf("new keys/%d", procs), 1 << 20, true, procs},
	}
}

// Suite returns the suite.
func Suite() harness.Suite {
	return harness.Suite{
		Name:  "memory",
		About: "decisions of limiters in this process, by the number of keys and of processors",
		Run:   run,
	}
}

func run(ctx context.Context, r *harness.Run) error {
	all, rounds, length := append(loads(1), loads(2)...), 5, 300*time.Millisecond
	if r.Quick {
		all, rounds, length = []load{loads(1)[1], loads(2)[1]}, 5, 100*time.Millisecond
	}
	for _, l := range all {
		var list []harness.Contender
		for i, c := range contenders {
			list = append(list, harness.Contender{Name: c.name, Ours: i == 0, Start: func(context.Context) (harness.Instance, error) {
				return &instance{contender: c, load: l, length: length}, nil
			}})
		}
		if err := r.Compare(ctx, l.name, rounds, metrics, list); err != nil {
			return err
		}
	}
	return nil
}
