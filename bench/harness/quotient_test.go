package harness

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCasesTakeTurnsAndCanBeDivided(t *testing.T) {
	var log []string
	one := &fake{name: "one", values: []float64{10, 20, 90}, log: &log}
	their := &fake{name: "theirs", values: []float64{5, 20, 30}, log: &log}
	other := &fake{name: "other", values: []float64{2, 2, 2}, log: &log}
	wrong := &fake{name: "wrong", err: fmt.Errorf("%w: 3", ErrWrong)}
	missing := Contender{Name: "missing", Start: func(context.Context) (Instance, error) { return nil, fmt.Errorf("%w: no", ErrMissing) }}
	r := &Run{}
	require.NoError(t, r.CompareAll(t.Context(), 3, timeMetric, []Case{
		{"a", []Contender{one.contender(true), their.contender(false)}},
		{"b", []Contender{other.contender(true), wrong.contender(false), missing}},
	}))
	require.Equal(t, []string{"one", "theirs", "other", "theirs", "other", "one", "other", "one", "theirs"}, log)
	require.True(t, one.closed && their.closed && other.closed && wrong.closed)
	require.Len(t, r.Results(), 5)
	require.Equal(t, "a", r.Results()[1].Case)
	require.Equal(t, 1.0, *r.Results()[1].Ratio)
	require.Equal(t, "b", r.Results()[2].Case)

	ours, m := Ref{"a", "one"}, timeMetric[0]
	r.Quotient("one/theirs", m, ours, Ref{"a", "theirs"})
	r.Quotient("one/other", m, ours, Ref{"b", "other"})
	r.Quotient("one/wrong", m, ours, Ref{"b", "wrong"})
	r.Quotient("missing/one", m, Ref{"b", "missing"}, ours)
	r.Quotient("one/nobody", m, ours, Ref{"a", "nobody"})
	r.Quotient("nothing", Metric{Name: "nothing"}, ours, ours)
	got := r.Results()[5:]
	require.Len(t, got, 5)
	require.Equal(t, Result{Case: "one/theirs", Contender: "one", Metric: "time ratio", Unit: "times", Median: 2, Min: 1, Max: 3}, got[0])
	require.Equal(t, []float64{10, 5, 45}, []float64{got[1].Median, got[1].Min, got[1].Max})
	require.Equal(t, "wrong: 3", got[2].Note)
	require.Equal(t, "missing: no", got[3].Note)
	require.Equal(t, "missing: one/nobody was not measured", got[4].Note)
}
