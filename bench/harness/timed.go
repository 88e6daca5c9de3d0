package harness

import (
	"context"
	"runtime"
	"time"
)

// How long a round of a loop takes.
const (
	QuickRound = 150 * time.Millisecond
	FullRound  = 300 * time.Millisecond
)

// LoopMetrics are what a [Timed] measures.
var LoopMetrics = []Metric{
	{Name: "time", Unit: "ns/op"},
	{Name: "allocs", Unit: "allocs/op", Exact: true},
	{Name: "bytes", Unit: "B/op", Exact: true},
}

// A Loop does what a case is about n times. It returns [ErrWrong] if a result is wrong.
type Loop func(n int) error

// Timed is an instance that runs a loop.
type Timed struct {
	loop Loop
	n    int // turns of a round
}

// NewTimed finds out how many turns of the loop take about length.
func NewTimed(l Loop, length time.Duration) (*Timed, error) {
	for n := 1000; ; n *= 4 {
		began := time.Now()
		if err := l(n); err != nil {
			return &Timed{l, n}, nil // the first round will report it
		}
		if took := time.Since(began); took > 5*time.Millisecond {
			return &Timed{l, int(float64(n) * float64(length) / float64(took))}, nil
		}
	}
}

// Round implements [Instance].
func (t *Timed) Round(context.Context) (map[string]float64, error) {
	var before, after runtime.MemStats
	runtime.GC() // no contender pays for garbage of the one before
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
		"allocs": roundDown(float64(after.Mallocs-before.Mallocs) / n),
		"bytes":  roundDown(float64(after.TotalAlloc-before.TotalAlloc) / n),
	}, nil
}

// roundDown drops the fraction that the runtime's own few allocations make.
func roundDown(perOp float64) float64 { return float64(int64(perOp + 0.01)) }

// Close implements [Instance].
func (t *Timed) Close() error { return nil }
