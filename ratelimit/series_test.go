package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestASeriesIsItsResults takes one by one at one moment, and makes a series of what the
// last and the denied ones got.
func TestASeriesIsItsResults(t *testing.T) {
	block := Block{After: 3, For: 2 * time.Hour}
	for name, rule := range map[string]Rule{
		"buckets":         Must(Buckets(BucketOptions{Limit: 20, Per: time.Minute})),
		"log":             Must(SlidingLog(LogOptions{Limit: 20, Per: time.Minute})),
		"window":          Must(FixedWindow(WindowOptions{Limit: 20, Per: time.Minute})),
		"gcra":            Must(GCRA(GCRAOptions{Limit: 7, Per: time.Second, Burst: 20})),
		"window, a block": Must(FixedWindow(WindowOptions{Limit: 20, Per: time.Minute, Block: block})),
		"gcra, a block":   Must(GCRA(GCRAOptions{Limit: 7, Per: time.Second, Burst: 20, Block: block})),
	} {
		for _, n := range []int64{1, 3, 10} {
			t.Run(fmt.Sprint(name, " by ", n), func(t *testing.T) {
				now := time.Unix(1_000_000_000, 123_456_000)
				m, err := NewMemory(MemoryOptions{Clock: func() time.Time { return now }})
				require.NoError(t, err)
				op := Op{Rule: rule, Key: "k", N: 1, Kind: Take}
				_, err = m.DoOne(t.Context(), op)
				require.NoError(t, err)
				now = now.Add(1234 * time.Microsecond)
				op.N = n
				var want []Result
				for range 30 {
					res, err := m.DoOne(t.Context(), op)
					require.NoError(t, err)
					want = append(want, res)
				}
				s := seriesOf(&rule, want)
				require.Positive(t, s.Passed)
				for i, w := range want {
					require.Equal(t, w, s.Result(i), "take %d", i)
				}
			})
		}
	}
}

// seriesOf returns the series with these results.
func seriesOf(r *Rule, results []Result) (s Series) {
	for _, res := range results {
		if res.Allowed {
			s.Passed++
			s.Last = res
		}
	}
	if r.algorithm == leaky {
		s.Raise = s.Last.Receipt.N * r.per
	}
	s.Denied = results[s.Passed]
	for _, res := range results[s.Passed:] {
		if res.RetryAfter > time.Hour {
			s.Hold = res.RetryAfter
			break
		}
		s.Free++
	}
	return s
}

func TestValidateMany(t *testing.T) {
	rule := Must(FixedWindow(WindowOptions{Limit: 2, Per: time.Minute}))
	good := Op{Rule: rule, Key: "k", N: 1, Kind: Take}
	require.NoError(t, ValidateMany(&good, 1))
	require.NoError(t, ValidateMany(&good, maxTimes))
	peek, large := good, good
	peek.Kind, large.N = Peek, 3
	require.ErrorIs(t, ValidateMany(&peek, 1), ErrOp)
	require.ErrorIs(t, ValidateMany(&large, 1), ErrTooLarge)
	for _, times := range []int{-1, 0, maxTimes + 1} {
		require.ErrorIs(t, ValidateMany(&good, times), ErrOp, "%d", times)
	}
}
