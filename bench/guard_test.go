package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

func TestGuardAcceptsHalfOfTheStoredRatio(t *testing.T) {
	b, out := guarded(t)
	require.NoError(t, b.guard(t.Context(), runs([2]float64{5, 30})))
	require.NotContains(t, out.String(), "once more")
}

func TestGuardFailsIfARatioIsLowTwice(t *testing.T) {
	b, out := guarded(t)
	err := b.guard(t.Context(), runs([2]float64{4.9, 4}, [2]float64{8, 3}))
	require.EqualError(t, err, "twice in a row: two: time against theirs: ratio 3.00, want at least 5.00")
	require.Contains(t, out.String(), "small: one: time against theirs: ratio 4.90, want at least 5.00\n")
	require.Contains(t, out.String(), "small: once more\n")
}

func TestLowRatioNeedsALowBestRound(t *testing.T) {
	result := func(ratio, best float64) []harness.Result {
		return []harness.Result{{Case: "one", Contender: "theirs", Ratio: &ratio, Best: &best}}
	}
	for _, got := range [][]harness.Result{result(9, 1), result(1, 4), {{Case: "one", Contender: "theirs", Ratio: new(float64)}}} {
		low, err := compare(result(10, 8), got)
		require.NoError(t, err)
		require.Empty(t, low)
	}
	low, err := compare(result(10, 8), result(4, 3))
	require.NoError(t, err)
	require.Equal(t, []lowRatio{{figure{"one", "theirs", ""}, 4, 5}}, low)
}

func TestGuardForgivesARatioThatIsLowOnce(t *testing.T) {
	b, _ := guarded(t)
	require.NoError(t, b.guard(t.Context(), runs([2]float64{4, 10}, [2]float64{10, 10})))
	require.NoError(t, b.guard(t.Context(), runs([2]float64{4, 10}, [2]float64{10, 4})))
}

// against returns a suite with one case, in which lazyreq competes with peers.
func against(peers ...harness.Contender) harness.Suite {
	return harness.Suite{Name: "small", Run: func(ctx context.Context, r *harness.Run) error {
		return r.Compare(ctx, "one", 1, metrics, append([]harness.Contender{contender("lazyreq", 1)}, peers...))
	}}
}

func TestLeastTakesThePlaceOfTheStoredRatio(t *testing.T) {
	b, _ := guarded(t)
	stored := record.Record{Results: []harness.Result{ratioOf("one", 10)}}
	require.NoError(t, stored.Write(record.Path(b.results, "small", true)))
	theirs := contender("theirs", 0.6)
	theirs.Least = 0.6
	require.NoError(t, b.guard(t.Context(), against(theirs)))
	theirs = contender("theirs", 0.59)
	theirs.Least = 0.6
	require.EqualError(t, b.guard(t.Context(), against(theirs)),
		"twice in a row: one: time against theirs: ratio 0.59, want at least 0.60")
}

func TestPeersWithoutARatioAreNotCompared(t *testing.T) {
	b, out := guarded(t)
	stored := record.Record{Results: []harness.Result{ratioOf("one", 10)}}
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
	require.NoError(t, record.Record{}.Write(record.Path(b.results, "small", true)))
	require.ErrorContains(t, b.guard(t.Context(), against(contender("theirs", 1))), "no ratio to compare")
}
