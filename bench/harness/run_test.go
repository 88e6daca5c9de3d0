package harness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is a contender whose rounds return its values in turn.
type fake struct {
	name   string
	values []float64
	err    error // of every round
	log    *[]string
	closed bool
}

func (f *fake) Round(context.Context) (map[string]float64, error) {
	if f.log != nil {
		*f.log = append(*f.log, f.name)
	}
	if f.err != nil {
		return nil, f.err
	}
	v := f.values[0]
	f.values = append(f.values[1:], v)
	return map[string]float64{"time": v}, nil
}

func (f *fake) Close() error {
	f.closed = true
	return nil
}

func (f *fake) contender(ours bool) Contender {
	return Contender{Name: f.name, Ours: ours, Start: func(context.Context) (Instance, error) { return f, nil }}
}

var timeMetric = []Metric{{Name: "time", Unit: "ns/op"}}

func TestCompareTakesTurns(t *testing.T) {
	var log []string
	a := &fake{name: "a", values: []float64{1}, log: &log}
	b := &fake{name: "b", values: []float64{2}, log: &log}
	c := &fake{name: "c", values: []float64{3}, log: &log}
	var begun []string
	r := &Run{Begin: func(name string) { begun = append(begun, name) }}
	require.NoError(t, r.Compare(t.Context(), "case", 3, timeMetric, []Contender{a.contender(true), b.contender(false), c.contender(false)}))
	require.Equal(t, []string{"a", "b", "c", "b", "c", "a", "c", "a", "b"}, log)
	require.Equal(t, []string{"case"}, begun)
	require.True(t, a.closed && b.closed && c.closed)
}

func TestCompareReportsMediansAndRatios(t *testing.T) {
	r := &Run{}
	ours := &fake{name: "ours", values: []float64{5, 1, 3}}
	theirs := &fake{name: "theirs", values: []float64{12, 6, 60}}
	require.NoError(t, r.Compare(t.Context(), "case", 3, timeMetric, []Contender{ours.contender(true), theirs.contender(false)}))
	results := r.Results()
	require.Len(t, results, 2)
	require.Equal(t, Result{Case: "case", Contender: "ours", Metric: "time", Median: 3, Min: 1, Max: 5, Unit: "ns/op"}, results[0])
	ratio, best := 4.0, 6.0
	require.Equal(t, Result{Case: "case", Contender: "theirs", Metric: "time", Median: 12, Min: 6, Max: 60, Unit: "ns/op", Ratio: &ratio, Best: &best}, results[1])
}

func TestTailsHaveARatioInTheFullFormOnly(t *testing.T) {
	for _, quick := range []bool{false, true} {
		r := &Run{Quick: quick}
		ours, theirs := &fake{name: "ours", values: []float64{1}}, &fake{name: "theirs", values: []float64{1}}
		metrics := []Metric{{Name: "time", Tail: true}}
		require.NoError(t, r.Compare(t.Context(), "case", 1, metrics, []Contender{ours.contender(true), theirs.contender(false)}))
		require.Equal(t, quick, r.Results()[1].Ratio == nil)
	}
}

// peers returns contenders for which there is never a ratio, by the note that gives the reason.
func peers() map[string]Contender {
	missing := fmt.Errorf("%w: no node", ErrMissing)
	return map[string]Contender{
		"wrong: count of 2, want 3": (&fake{name: "theirs", err: fmt.Errorf("%w: count of 2, want 3", ErrWrong)}).contender(false),
		"failed: boom":              (&fake{name: "theirs", err: errors.New("boom")}).contender(false),
		"wrong: time is NaN":        (&fake{name: "theirs", values: []float64{1, 2, math.NaN()}}).contender(false),
		"wrong: time is +Inf":       (&fake{name: "theirs", values: []float64{math.Inf(1)}}).contender(false),
		"missing: no node":          {Name: "theirs", Start: func(context.Context) (Instance, error) { return nil, missing }},
		"failed: no":                {Name: "theirs", Start: func(context.Context) (Instance, error) { return (*fake)(nil), errors.New("no") }},
	}
}

func TestPeerWithoutARatioStaysInTheTable(t *testing.T) {
	for note, theirs := range peers() {
		r := &Run{}
		ours := &fake{name: "ours", values: []float64{1}}
		require.NoError(t, r.Compare(t.Context(), "case", 4, timeMetric, []Contender{ours.contender(true), theirs}), note)
		require.Len(t, r.Results(), 2, note)
		require.Equal(t, 1.0, r.Results()[0].Median)
		require.Equal(t, note, r.Results()[1].Note)
		require.Nil(t, r.Results()[1].Ratio)
		require.False(t, math.IsNaN(r.Results()[1].Median) || math.IsInf(r.Results()[1].Max, 0))
	}
}

// dying is a contender that fails after its first round.
type dying struct{ rounds, closed int }

func (d *dying) Round(context.Context) (map[string]float64, error) {
	if d.rounds++; d.rounds > 1 {
		return nil, errors.New("killed:\n\tout of memory")
	}
	return map[string]float64{"time": 0.001}, nil
}

func (d *dying) Close() error {
	d.closed++
	return nil
}

func TestPeerThatDiesHasNoMoreRounds(t *testing.T) {
	r := &Run{}
	ours, theirs := &fake{name: "ours", values: []float64{1}}, &dying{}
	start := func(context.Context) (Instance, error) { return theirs, nil }
	require.NoError(t, r.Compare(t.Context(), "case", 5, timeMetric, []Contender{ours.contender(true), {Name: "theirs", Start: start}}))
	require.Equal(t, 2, theirs.rounds)
	require.Equal(t, 1, theirs.closed)
	require.Equal(t, Result{
		Case: "case", Contender: "theirs", Metric: "time", Median: 0.001, Min: 0.001, Max: 0.001, Unit: "ns/op", Note: "failed: killed: out of memory",
	}, r.Results()[1])
}

func TestAnyErrorOfOursEndsTheRun(t *testing.T) {
	for note, ours := range peers() {
		ours.Ours = true
		r := &Run{}
		theirs := &fake{name: "theirs", values: []float64{1}}
		require.EqualError(t, r.Compare(t.Context(), "case", 4, timeMetric, []Contender{ours, theirs.contender(false)}), "case: theirs: "+note)
		require.True(t, theirs.closed)
		require.Equal(t, note, r.Results()[0].Note)
	}
}

func TestInterruptedRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	boom := errors.New("boom")
	cancel(boom)
	r := &Run{}
	ours, theirs := &fake{name: "ours", values: []float64{1}}, &fake{name: "theirs", values: []float64{1}}
	require.Equal(t, boom, r.Compare(ctx, "case", 2, timeMetric, []Contender{theirs.contender(false), ours.contender(true)}))
	require.True(t, ours.closed && theirs.closed)
}
