package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/record"
)

// guarded returns a bench whose stored ratios are 10 in the cases one and two, and its output.
func guarded(t *testing.T) (bench, *bytes.Buffer) {
	var out bytes.Buffer
	b := bench{results: t.TempDir(), out: &out, progress: io.Discard}
	stored := record.Record{Suite: "small", Results: []harness.Result{ratioOf("one", 10), ratioOf("two", 10)}}
	require.NoError(t, stored.Write(record.Path(b.results, "small", true)))
	return b, &out
}

func ratioOf(name string, ratio float64) harness.Result {
	return harness.Result{Case: name, Contender: "theirs", Metric: "time", Ratio: &ratio, Best: &ratio}
}

// runs returns a suite. Each of its runs returns the next pair of ratios, for the cases one and two.
func runs(ratios ...[2]float64) harness.Suite {
	return harness.Suite{Name: "small", Run: func(ctx context.Context, r *harness.Run) error {
		if !r.Quick {
			return errors.New("the guard runs the short form")
		}
		now := ratios[0]
		ratios = ratios[1:]
		for i, name := range []string{"one", "two"} {
			if err := r.Compare(ctx, name, 1, metrics, []harness.Contender{contender("lazyreq", 1), contender("theirs", now[i])}); err != nil {
				return err
			}
		}
		return nil
	}}
}

func TestGuardAcceptsTwoThirdsOfTheStoredRatio(t *testing.T) {
	b, out := guarded(t)
	require.NoError(t, b.guard(t.Context(), runs([2]float64{6.7, 30})))
	require.NotContains(t, out.String(), "run 1")
}

func TestGuardFailsIfARatioIsLowThreeTimes(t *testing.T) {
	b, out := guarded(t)
	err := b.guard(t.Context(), runs([2]float64{6.6, 4}, [2]float64{8, 3}, [2]float64{4, 2}))
	require.EqualError(t, err, "worse in 3 runs: two: time of theirs: ratio 2.00, want at least 6.67")
	require.Equal(t, `small, run 1 of 3: one: time of theirs: ratio 6.60, want at least 6.67
small, run 1 of 3: two: time of theirs: ratio 4.00, want at least 6.67
small, run 2 of 3: two: time of theirs: ratio 3.00, want at least 6.67
small, run 3 of 3: two: time of theirs: ratio 2.00, want at least 6.67
`, strings.Join(regexp.MustCompile("(?m)^small, run.*\n").FindAllString(out.String(), -1), ""))
}

func TestLowRatioNeedsALowBestRound(t *testing.T) {
	result := func(ratio, best float64) []harness.Result {
		return []harness.Result{{Case: "one", Contender: "theirs", Ratio: &ratio, Best: &best}}
	}
	for _, got := range [][]harness.Result{result(9, 1), result(1, 6), {{Case: "one", Contender: "theirs", Ratio: new(float64)}}} {
		losses, err := compare(result(10, 8), got)
		require.NoError(t, err)
		require.Empty(t, losses)
	}
	losses, err := compare(result(10, 8), result(6, 5))
	require.NoError(t, err)
	require.Equal(t, []loss{{figure{"one", "theirs", ""}, "ratio 6.00, want at least 6.67"}}, losses)
}

func TestExactCostsMustNotGrow(t *testing.T) {
	results := func(allocs float64) []harness.Result {
		ours := harness.Result{Case: "one", Contender: "lazyreq", Metric: "allocs", Unit: "allocs/op", Min: allocs, Max: allocs, Exact: true}
		other := ours
		other.Metric, other.Exact = "time", false
		return []harness.Result{ours, other, ratioOf("one", 10)}
	}
	for _, now := range []float64{0, 14, 14.1} {
		losses, err := compare(results(14), results(now))
		require.NoError(t, err)
		require.Empty(t, losses)
	}
	losses, err := compare(results(14), results(15))
	require.NoError(t, err)
	require.Equal(t, []loss{{figure{"one", "lazyreq", "allocs"}, "15 allocs/op, want at most 14"}}, losses)

	losses, err = compare([]harness.Result{ratioOf("one", 10)}, results(15))
	require.NoError(t, err)
	require.Empty(t, losses, "a cost that is not stored")
}

func TestGuardForgivesARatioThatIsLowOnceOrTwice(t *testing.T) {
	b, _ := guarded(t)
	low, high := [2]float64{4, 10}, [2]float64{10, 4}
	require.NoError(t, b.guard(t.Context(), runs(low, [2]float64{10, 10})))
	require.NoError(t, b.guard(t.Context(), runs(low, high)))
	require.NoError(t, b.guard(t.Context(), runs(low, low, high)))
}

// against returns a suite with one case, in which lazyreq competes with peers.
func against(peers ...harness.Contender) harness.Suite {
	return harness.Suite{Name: "small", Run: func(ctx context.Context, r *harness.Run) error {
		return r.Compare(ctx, "one", 1, metrics, append([]harness.Contender{contender("lazyreq", 1)}, peers...))
	}}
}

func TestLeastTakesThePlaceOfTheStoredRatio(t *testing.T) {
	b, _ := guarded(t)
	stored := record.Record{Suite: "small", Results: []harness.Result{ratioOf("one", 10)}}
	require.NoError(t, stored.Write(record.Path(b.results, "small", true)))
	theirs := contender("theirs", 0.6)
	theirs.Least = 0.6
	require.NoError(t, b.guard(t.Context(), against(theirs)))
	theirs = contender("theirs", 0.59)
	theirs.Least = 0.6
	require.EqualError(t, b.guard(t.Context(), against(theirs)),
		"worse in 3 runs: one: time of theirs: ratio 0.59, want at least 0.60")
}

func TestPeersWithoutARatioAreNotCompared(t *testing.T) {
	b, out := guarded(t)
	stored := record.Record{Suite: "small", Results: []harness.Result{ratioOf("one", 10)}}
	require.NoError(t, stored.Write(record.Path(b.results, "small", true)))
	others := contender("others", 1)
	others.Least = 0.1
	for _, why := range []error{fmt.Errorf("%w: no node", harness.ErrMissing), fmt.Errorf("%w: 3", harness.ErrWrong), errors.New("died")} {
		require.NoError(t, b.guard(t.Context(), against(absent("theirs", why), others)))
		require.Contains(t, out.String(), why.Error())
		require.ErrorContains(t, b.guard(t.Context(), against(absent("theirs", why))), "no ratio to compare")
	}
}

func TestGuardNeedsTheStoredRatios(t *testing.T) {
	b, _ := guarded(t)
	require.ErrorContains(t, b.guard(t.Context(), against(contender("theirs", 10))), "two: no time of theirs, which is stored")
	b.results = t.TempDir()
	require.ErrorContains(t, b.guard(t.Context(), against(contender("theirs", 10))), "run the suite without -quick")
}

func TestGuardNeedsStoredRatios(t *testing.T) {
	b, _ := guarded(t)
	require.NoError(t, record.Record{Suite: "small"}.Write(record.Path(b.results, "small", true)))
	require.ErrorContains(t, b.guard(t.Context(), against(contender("theirs", 1))), "no ratio to compare")
}
