package harness

import (
	"context"
	"errors"
	"fmt"
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
	var steps []string
	r := NewRun("s", false, func(done, planned int, what string) {
		steps = append(steps, fmt.Sprint(done, "/", planned, " ", what))
	})
	r.Plan(9)
	require.NoError(t, r.Compare(t.Context(), "case", 3, timeMetric, []Contender{a.contender(true), b.contender(false), c.contender(false)}))
	require.Equal(t, []string{"a", "b", "c", "b", "c", "a", "c", "a", "b"}, log)
	require.Len(t, steps, 9)
	require.Equal(t, "1/9 case a", steps[0])
	require.Equal(t, "9/9 case b", steps[8])
	require.True(t, a.closed && b.closed && c.closed)
}

func TestCompareReportsMediansAndRatios(t *testing.T) {
	r := NewRun("s", false, nil)
	ours := &fake{name: "ours", values: []float64{5, 1, 3}}
	theirs := &fake{name: "theirs", values: []float64{12, 6, 60}}
	require.NoError(t, r.Compare(t.Context(), "case", 3, timeMetric, []Contender{ours.contender(true), theirs.contender(false)}))
	results := r.Results()
	require.Len(t, results, 2)
	require.JSONEq(t, `{"suite":"s","case":"case","contender":"ours","metric":"time","median":3,"min":1,"max":5,"unit":"ns/op","ratio":null}`, results[0].JSON())
	require.JSONEq(t, `{"suite":"s","case":"case","contender":"theirs","metric":"time","median":12,"min":6,"max":60,"unit":"ns/op","ratio":4}`, results[1].JSON())
}

func TestWrongContenderStaysInTheTable(t *testing.T) {
	r := NewRun("s", false, nil)
	ours := &fake{name: "ours", values: []float64{1}}
	theirs := &fake{name: "theirs", err: fmt.Errorf("%w: count of 2, want 3", ErrWrong)}
	require.NoError(t, r.Compare(t.Context(), "case", 2, timeMetric, []Contender{ours.contender(true), theirs.contender(false)}))
	got := r.Results()[1]
	require.Equal(t, "wrong: count of 2, want 3", got.Note)
	require.Nil(t, got.Ratio)
	require.True(t, theirs.closed)
}

func TestMissingContenderStaysInTheTable(t *testing.T) {
	r := NewRun("s", false, nil)
	ours := &fake{name: "ours", values: []float64{1}}
	missing := Contender{Name: "theirs", Start: func(context.Context) (Instance, error) {
		return nil, fmt.Errorf("%w: no node", ErrMissing)
	}}
	require.NoError(t, r.Compare(t.Context(), "case", 2, timeMetric, []Contender{ours.contender(true), missing}))
	require.Len(t, r.Results(), 2)
	require.Equal(t, "missing: no node", r.Results()[1].Note)
	require.Nil(t, r.Results()[1].Ratio)
}

func TestOursMustBeRight(t *testing.T) {
	r := NewRun("s", false, nil)
	ours := &fake{name: "ours", err: fmt.Errorf("%w: no", ErrWrong)}
	theirs := &fake{name: "theirs", values: []float64{1}}
	require.ErrorContains(t, r.Compare(t.Context(), "case", 2, timeMetric, []Contender{ours.contender(true), theirs.contender(false)}), "ours: wrong: no")
	require.Len(t, r.Results(), 2)
}

func TestAnotherErrorEndsTheRun(t *testing.T) {
	boom := errors.New("boom")
	r := NewRun("s", false, nil)
	ours := &fake{name: "ours", values: []float64{1}}
	theirs := &fake{name: "theirs", err: boom}
	require.ErrorIs(t, r.Compare(t.Context(), "case", 2, timeMetric, []Contender{ours.contender(true), theirs.contender(false)}), boom)
	require.True(t, ours.closed && theirs.closed)

	broken := Contender{Name: "theirs", Start: func(context.Context) (Instance, error) { return nil, boom }}
	ours = &fake{name: "ours", values: []float64{1}}
	require.ErrorIs(t, r.Compare(t.Context(), "case", 2, timeMetric, []Contender{ours.contender(true), broken}), boom)
	require.True(t, ours.closed)
}
