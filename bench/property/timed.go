package property

import (
	"context"
	"runtime"
	"time"
)

// How long a round takes.
const (
	quickRound = 150 * time.Millisecond
	fullRound  = 300 * time.Millisecond
)

// timed measures a loop.
type timed struct {
	loop loop
	n    int // turns of a round
}

// newTimed finds out how many turns of the loop take about length.
func newTimed(l loop, length time.Duration) (*timed, error) {
	for n := 1000; ; n *= 4 {
		began := time.Now()
		if err := l(n); err != nil {
			return &timed{l, n}, nil // the first round will tell
		}
		if took := time.Since(began); took > 5*time.Millisecond {
			return &timed{l, int(float64(n) * float64(length) / float64(took))}, nil
		}
	}
}

// Round implements [harness.Instance].
func (t *timed) Round(context.Context) (map[string]float64, error) {
	var before, after runtime.MemStats
	runtime.GC() // nobody pays for what the one before left
	runtime.ReadMemStats(&before)
	began := time.Now()
	err := t.loop(t.n)
	took := time.Since(began)
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&after)
	n := float64(t.n)
	return map[string]float64{
		"time":   float64(took.Nanoseconds()) / n,
		"allocs": whole(float64(after.Mallocs-before.Mallocs) / n),
		"bytes":  whole(float64(after.TotalAlloc-before.TotalAlloc) / n),
	}, nil
}

// whole drops the fraction that the runtime's own few allocations make.
func whole(perOp float64) float64 { return float64(int64(perOp + 0.01)) }

// Close implements [harness.Instance].
func (t *timed) Close() error { return nil }
