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
	cost, throughput := Metric{Name: "time"}, Metric{Name: "throughput", More: true}
	require.Equal(t, 4.0, *ratio(cost, 10, 40))
	require.Equal(t, 0.25, *ratio(cost, 40, 10))
	require.Equal(t, 4.0, *ratio(throughput, 40, 10))
	require.Equal(t, 0.25, *ratio(throughput, 10, 40))
	require.Equal(t, 0.0, *ratio(cost, 2, 0), "theirs costs nothing")
	require.Nil(t, ratio(cost, 0, 2), "ours costs nothing: no number says how much better that is")
	require.Nil(t, ratio(cost, 0, 0))
	require.Nil(t, ratio(throughput, 1, 0))
}
