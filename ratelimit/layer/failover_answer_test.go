package layer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// passes takes single units until a take is denied. It returns the number of units that passed.
func (f *failoverTest) passes(r ratelimit.Rule, key string) (n int) {
	f.Helper()
	for {
		res, _, err := f.take(r, key, 1)
		require.NoError(f, err)
		require.Equal(f, ratelimit.FromFailover, res.Source)
		require.Equal(f, r.Limit(), res.Limit)
		if !res.Allowed {
			require.True(f, res.Violated)
			require.Positive(f, res.RetryAfter)
			return n
		}
		n++
		require.Less(f, n, 1000)
	}
}

func localRules(limit int64) []ratelimit.Rule {
	const per = time.Minute
	return []ratelimit.Rule{
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: per, Interval: 5 * time.Second, Span: 10 * time.Minute}),
		ratelimit.SlidingLog(limit, per),
		windowOf(limit), gcra(limit),
		ratelimit.GCRA(600, time.Hour).WithBurst(limit).WithName("burst"),
	}
}

func TestLocalHasAShareOfTheLimit(t *testing.T) {
	for _, r := range localRules(10) {
		for _, tt := range []struct{ replicas, want int }{{0, 10}, {1, 10}, {3, 3}, {10, 1}, {50, 1}} {
			withFailover(t, FailoverOptions{Mode: Local, Replicas: tt.replicas}, func(t *testing.T, f *failoverTest) {
				f.down()
				require.Equal(t, tt.want, f.passes(r, "k"), "%v", r)
				<-time.After(10 * time.Minute)
				require.Equal(t, tt.want, f.passes(r, "k"), "%v", r)
			})
		}
	}
}

// TestLocalStartsWithWhatRemains checks that a local counter starts with its share of the units that remained before
// the store failed.
func TestLocalStartsWithWhatRemains(t *testing.T) {
	for _, r := range localRules(12) {
		for _, tt := range []struct {
			used     int64
			replicas int
			want     int
		}{{0, 1, 12}, {5, 1, 7}, {12, 1, 0}, {4, 4, 2}, {11, 4, 1}, {12, 4, 0}} {
			withFailover(t, FailoverOptions{Mode: Local, Replicas: tt.replicas}, func(t *testing.T, f *failoverTest) {
				for range tt.used {
					_, _, err := f.take(r, "k", 1)
					require.NoError(t, err)
				}
				f.down()
				require.Equal(t, tt.want, f.passes(r, "k"), "%v, %+v", r, tt)
				require.Equal(t, 12/tt.replicas, f.passes(r, "stranger"), "%v, %+v", r, tt)
				f.back()
				f.down() // the local counter still has the units that passed during the first outage
				require.Zero(t, f.passes(r, "k"), "%v, %+v", r, tt)
			})
		}
	}
}

// TestLocalChargesWhatWasUsedOnce checks that the units that were used before the failure are charged to the local
// counter only once, although they come back while the store is down.
func TestLocalChargesWhatWasUsedOnce(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Local}, func(t *testing.T, f *failoverTest) {
		r := gcra(10)
		_, _, err := f.take(r, "k", 4)
		require.NoError(t, err)
		f.down()
		res, _, err := f.take(r, "k", 1)
		require.NoError(t, err)
		require.EqualValues(t, 5, res.Remaining)
		<-time.After(12 * time.Second)
		require.Equal(t, 7, f.passes(r, "k"))
	})
}

func TestLocalForgetsEndedCounters(t *testing.T) {
	for _, r := range localRules(4) {
		withFailover(t, FailoverOptions{Mode: Local}, func(t *testing.T, f *failoverTest) {
			for _, key := range []string{"old", "reset"} {
				_, _, err := f.take(r, key, 4)
				require.NoError(t, err)
			}
			_, err := f.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "reset", Kind: ratelimit.Reset})
			require.NoError(t, err)
			f.down()
			require.Equal(t, 4, f.passes(r, "reset"), "%v", r)
			<-time.After(2 * time.Minute)
			require.Equal(t, 4, f.passes(r, "old"), "%v", r)
		})
	}
}

// TestTakeAboveAShareIsDenied checks that a take within the limit is denied if it is larger than the process's share.
func TestTakeAboveAShareIsDenied(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Local, Replicas: 4}, func(t *testing.T, f *failoverTest) {
		f.down()
		r, other := windowOf(8), gcra(100)
		res, _, err := f.take(r, "k", 3)
		require.NoError(t, err)
		require.Equal(t, ratelimit.Result{Violated: true, Source: ratelimit.FromFailover, Limit: 8, RetryAfter: 250 * time.Millisecond}, res)
		_, _, err = f.take(r, "k", 9)
		require.ErrorIs(t, err, ratelimit.ErrTooLarge)
		both, err := f.Do(t.Context(), []ratelimit.Op{take(other, "k", 1), take(r, "k", 3)})
		require.NoError(t, err)
		require.False(t, both[0].Allowed)
		require.False(t, both[1].Allowed)
		require.Equal(t, 25, f.passes(other, "k"), "nothing was charged")
	})
}

// TestEachRuleHasItsMode checks that the strictest mode of a group's rules applies to the group.
func TestEachRuleHasItsMode(t *testing.T) {
	open, local, closed := gcra(5), windowOf(2), ratelimit.Throttle(time.Second)
	modes := map[ratelimit.Rule]Mode{open: Open, local: Local, closed: Closed}
	withFailover(t, FailoverOptions{ModeFor: func(r ratelimit.Rule) Mode { return modes[r] }}, func(t *testing.T, f *failoverTest) {
		f.down()
		group := []ratelimit.Op{take(open, "k", 1), take(local, "k", 1)}
		for range 2 {
			both, err := f.Do(t.Context(), group)
			require.NoError(t, err)
			require.True(t, both[0].Allowed && both[1].Allowed)
		}
		both, err := f.Do(t.Context(), group)
		require.NoError(t, err)
		require.False(t, both[0].Allowed)
		require.False(t, both[0].Violated)
		require.True(t, both[1].Violated)
		_, err = f.Do(t.Context(), append(group, take(closed, "k", 1)))
		require.ErrorAs(t, err, new(*UnavailableError))
		// The modes of one group do not affect another group of the list.
		all, err := f.Do(t.Context(), append(group, take(open, "other", 1)))
		require.NoError(t, err)
		require.False(t, all[0].Allowed)
		require.True(t, all[2].Allowed)
	})
}

// TestLocalIsBounded checks that MaxKeys limits the keys that Local counts, and the keys whose remaining units it
// remembers.
func TestLocalIsBounded(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Local, MaxKeys: 100}, func(t *testing.T, f *failoverTest) {
		keys := func(r ratelimit.Rule) {
			for i := range 2000 {
				_, _, err := f.take(r, string(rune('a'+i)), 1)
				require.NoError(t, err)
			}
		}
		keys(gcra(10))
		known := 0
		for i := range f.known.sets {
			for j := range f.known.sets[i].entries {
				if f.known.sets[i].entries[j].Load() != nil {
					known++
				}
			}
		}
		require.LessOrEqual(t, known, 128)
		require.Greater(t, known, 100)
		<-time.After(2 * time.Second) // so that the breaker's window no longer has the many successes
		f.down()
		keys(gcra(10))
		require.LessOrEqual(t, f.local.Len(), 100)
	})
}
