package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/record"
)

const (
	guardRuns = 3       // a loss in all of these runs is an error, because a single run may be disturbed
	keptRatio = 2.0 / 3 // of a stored ratio, which a short form must reach
	keptCost  = 1.01    // of a stored cost that is exact, which a short form must keep
)

// guard runs the short form of a suite and returns an error if we have become worse: if a figure
// is a loss in guardRuns runs.
func (b bench) guard(ctx context.Context, s harness.Suite) error {
	var losses []loss
	for run := range guardRuns {
		now, err := b.findLosses(ctx, s)
		if err != nil {
			return err
		}
		if run > 0 {
			now = slices.DeleteFunc(now, func(l loss) bool {
				return !slices.ContainsFunc(losses, func(before loss) bool { return before.figure == l.figure })
			})
		}
		if losses = now; len(losses) == 0 {
			return nil
		}
		for _, l := range losses {
			fmt.Fprintf(b.out, "%s, run %d of %d: %v\n", s.Name, run+1, guardRuns, l)
		}
	}
	var errs []error
	for _, l := range losses {
		errs = append(errs, fmt.Errorf("worse in %d runs: %v", guardRuns, l))
	}
	return errors.Join(errs...)
}

func (b bench) findLosses(ctx context.Context, s harness.Suite) ([]loss, error) {
	got, err := b.measure(ctx, s, true)
	if err != nil {
		return nil, err
	}
	stored, err := record.Read(record.Path(b.results, s.Name, true))
	if err != nil {
		return nil, fmt.Errorf("no stored ratios, run the suite without -quick: %w", err)
	}
	return compare(stored.Results, got.Results)
}

// figure names a result.
type figure struct{ name, contender, metric string }

func figureOf(r harness.Result) figure { return figure{r.Case, r.Contender, r.Metric} }

// loss is a figure that is worse than it may be.
type loss struct {
	figure
	text string
}

func (l loss) String() string {
	return fmt.Sprintf("%s: %s of %s: %s", l.name, l.metric, l.contender, l.text)
}

// compare returns the results that are losses. A ratio is a loss if it is low, and that of the best
// rounds is low as well: other work on the machine slows some rounds down, but seldom all. Low
// means below Least or, without a Least, below keptRatio of the stored ratio. A result without a
// ratio, such as our own, is a loss if its metric is exact and the cost has grown.
//
// Ratios are those of a case's first contender. If another one of ours becomes slower, such as GCRA in the
// suite memory, this raises its ratio, and is not found.
func compare(stored, got []harness.Result) (losses []loss, err error) {
	before := map[figure]harness.Result{}
	for _, r := range stored {
		before[figureOf(r)] = r
	}
	compared := false
	for _, r := range got {
		f := figureOf(r)
		old := before[f]
		delete(before, f)
		switch {
		case r.Ratio != nil:
			compared = compared || old.Ratio != nil || r.Least > 0
			if isLow(r.Ratio, old.Ratio, r.Least) && isLow(r.Best, old.Best, r.Least) {
				losses = append(losses, loss{f, fmt.Sprintf("ratio %.2f, want at least %.2f", *r.Ratio, leastRatio(old.Ratio, r.Least))})
			}
		case r.Exact && r.Note == "" && old.Case != "" && r.Min > old.Max*keptCost:
			losses = append(losses, loss{f, fmt.Sprintf("%.4g %s, want at most %.4g", r.Min, r.Unit, old.Max)})
		}
	}
	for f, r := range before {
		if r.Ratio != nil {
			err = errors.Join(err, fmt.Errorf("%s: no %s of %s, which is stored: run the suite without -quick", f.name, f.metric, f.contender))
		}
	}
	if !compared {
		err = errors.Join(err, errors.New("no ratio to compare: every peer is missing, wrong, has failed or is not stored"))
	}
	return losses, err
}

func isLow(ratio, stored *float64, least float64) bool {
	return ratio != nil && *ratio < leastRatio(stored, least)
}

func leastRatio(stored *float64, least float64) float64 {
	if least == 0 && stored != nil {
		return *stored * keptRatio
	}
	return least
}
