package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/record"
)

// guard runs the short form of a suite and returns an error if we have become slow: if a
// ratio is below the one that compare demands, in this run and in a second one.
func (b bench) guard(ctx context.Context, s harness.Suite) error {
	low, err := b.findLowRatios(ctx, s)
	if err != nil || len(low) == 0 {
		return err
	}
	for _, l := range low {
		fmt.Fprintf(b.out, "%s: %v\n", s.Name, l)
	}
	fmt.Fprintf(b.out, "%s: once more\n", s.Name)
	again, err := b.findLowRatios(ctx, s)
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range again {
		if slices.ContainsFunc(low, func(first lowRatio) bool { return first.figure == l.figure }) {
			errs = append(errs, fmt.Errorf("twice in a row: %v", l))
		}
	}
	return errors.Join(errs...)
}

func (b bench) findLowRatios(ctx context.Context, s harness.Suite) ([]lowRatio, error) {
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

// lowRatio is a ratio that is lower than it may be.
type lowRatio struct {
	figure
	ratio, least float64
}

func (l lowRatio) String() string {
	return fmt.Sprintf("%s: %s against %s: ratio %.2f, want at least %.2f", l.name, l.metric, l.contender, l.ratio, l.least)
}

// compare returns the results whose ratio is low, if that of the best rounds is low as well: other
// work on the machine slows some rounds down, but seldom all. Low means below Least or, without a
// Least, below half of the stored ratio. Results without a ratio are not compared.
func compare(stored, got []harness.Result) (low []lowRatio, err error) {
	before := map[figure]harness.Result{}
	for _, r := range stored {
		if r.Ratio != nil {
			before[figureOf(r)] = r
		}
	}
	compared := false
	for _, r := range got {
		f := figureOf(r)
		old := before[f]
		delete(before, f)
		if r.Ratio == nil {
			continue
		}
		compared = compared || old.Ratio != nil || r.Least > 0
		if isLow(r.Ratio, old.Ratio, r.Least) && isLow(r.Best, old.Best, r.Least) {
			low = append(low, lowRatio{f, *r.Ratio, leastRatio(old.Ratio, r.Least)})
		}
	}
	for f := range before {
		err = errors.Join(err, fmt.Errorf("%s: no %s of %s, which is stored: run the suite without -quick", f.name, f.metric, f.contender))
	}
	if !compared {
		err = errors.Join(err, errors.New("no ratio to compare: every peer is missing, wrong, has failed or is not stored"))
	}
	return low, err
}

func isLow(ratio, stored *float64, least float64) bool {
	return ratio != nil && *ratio < leastRatio(stored, least)
}

func leastRatio(stored *float64, least float64) float64 {
	if least == 0 && stored != nil {
		return *stored / 2
	}
	return least
}
