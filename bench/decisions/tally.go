package decisions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// tally is what some calls came to.
type tally struct {
	decided, denied, failed int64
	err                     error // of one that failed
	took                    []time.Duration
}

// checkNoneDenied returns an error if a call was denied or has failed.
func (t *tally) checkNoneDenied(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case t.failed > 0:
		all := t.decided + t.failed
		return fmt.Errorf("%w: %.2g %% of %d calls failed: %w", harness.ErrWrong, 100*float64(t.failed)/float64(all), all, t.err)
	case t.denied > 0:
		return fmt.Errorf("%w: %d of %d takes denied, far below the limit", harness.ErrWrong, t.denied, t.decided)
	}
	return nil
}

func (t *tally) count(ok bool, err error) {
	switch {
	case err != nil:
		t.failed++
		t.err = err
	case !ok:
		t.denied++
		t.decided++
	default:
		t.decided++
	}
}

func (t *tally) add(o tally) {
	t.decided += o.decided
	t.denied += o.denied
	t.failed += o.failed
	t.took = append(t.took, o.took...)
	if t.err == nil {
		t.err = o.err
	}
}

// addLatenciesTo adds to values the mean and percentiles of the latencies of calls, in µs.
func (t *tally) addLatenciesTo(values map[string]float64) {
	slices.Sort(t.took)
	var sum time.Duration
	for _, d := range t.took {
		sum += d
	}
	n := len(t.took)
	values["mean latency"] = micros(sum) / float64(n)
	values["p50 latency"] = micros(t.took[n/2])
	values["p99 latency"] = micros(t.took[n*99/100])
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
