package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSummary(t *testing.T) {
	for _, tt := range []struct {
		samples           []float64
		median, min, most float64
	}{
		{[]float64{4}, 4, 4, 4},
		{[]float64{9, 1}, 5, 1, 9},
		{[]float64{3, 100, 1}, 3, 1, 100},
		{[]float64{4, 3, 2, 1}, 2.5, 1, 4},
	} {
		median, least, most := summary(tt.samples)
		require.Equal(t, []float64{tt.median, tt.min, tt.most}, []float64{median, least, most}, "%v", tt.samples)
	}
}

func TestRatioIsAboveOneWhereWeAreBetter(t *testing.T) {
	ratios := func(m Metric, ours, theirs Result) []any {
		theirs.addRatios(m, ours)
		var list []any
		for _, r := range []*float64{theirs.Ratio, theirs.Best} {
			if r == nil {
				list = append(list, nil)
				continue
			}
			list = append(list, *r)
		}
		return list
	}
	cost, throughput := Metric{Name: "time"}, Metric{Name: "throughput", More: true}
	ten, forty := Result{Median: 10, Min: 5, Max: 12}, Result{Median: 40, Min: 15, Max: 60}
	require.Equal(t, []any{4.0, 3.0}, ratios(cost, ten, forty))
	require.Equal(t, []any{0.25, 0.2}, ratios(throughput, ten, forty))
	require.Equal(t, []any{0.0, 0.0}, ratios(cost, ten, Result{}), "theirs costs nothing")
	require.Equal(t, []any{nil, nil}, ratios(cost, Result{}, ten), "ours costs nothing: no number says how much better that is")
	require.Equal(t, []any{4.0, nil}, ratios(cost, Result{Median: 10}, forty))
	require.Equal(t, []any{nil, nil}, ratios(throughput, ten, Result{}))
}
