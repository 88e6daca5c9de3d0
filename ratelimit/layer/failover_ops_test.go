package layer

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func TestOpsThatNeedTheStore(t *testing.T) {
	for _, mode := range []Mode{Closed, Open, Local} {
		withFailover(t, FailoverOptions{Mode: mode}, func(t *testing.T, f *failoverTest) {
			f.down()
			window := windowOf(5)
			for _, kind := range []ratelimit.Kind{ratelimit.Count, ratelimit.Refund, ratelimit.Reset} {
				op := ratelimit.Op{Rule: window, Key: "k", Kind: kind}
				_, err := f.DoOne(t.Context(), op)
				require.ErrorAs(t, err, new(*UnavailableError), "%v", kind)
				_, err = f.Do(t.Context(), []ratelimit.Op{take(window, "k", 1), op})
				require.ErrorAs(t, err, new(*UnavailableError), "%v", kind)
			}
			if mode != Closed {
				limiter, err := ratelimit.NewLimiter(f.failover, window)
				require.NoError(t, err)
				_, err = limiter.Add(t.Context(), "k", 1)
				require.NoError(t, err)
				_, err = limiter.AddCount(t.Context(), "k", 1, 0)
				require.ErrorIs(t, err, ratelimit.ErrStore)
			}
			f.back()
			res, _, err := f.take(window, "k", 1)
			require.NoError(t, err)
			require.EqualValues(t, 4, res.Remaining)
		})
	}
}

// TestLocalReleases checks that requests in progress that Local has counted release their units, during the outage or after
// it, and that a unit that the store has charged stays in use.
func TestLocalReleases(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Local}, func(t *testing.T, f *failoverTest) {
		r := ratelimit.Concurrent(3)
		limiter, err := ratelimit.NewLimiter(f.failover, r)
		require.NoError(t, err)
		takeOne := func() ratelimit.Result {
			res, err := limiter.Take(t.Context(), "k", 1)
			require.NoError(t, err)
			return res
		}
		release := func(res ratelimit.Result) bool {
			released, err := limiter.Refund(t.Context(), "k", res)
			require.NoError(t, err)
			return released
		}
		held := takeOne()
		for range 3 {
			f.down()
			_, err = limiter.Refund(t.Context(), "k", held)
			require.ErrorAs(t, err, new(*UnavailableError))
			first, second := takeOne(), takeOne()
			require.True(t, first.Allowed && second.Allowed)
			require.False(t, takeOne().Allowed)
			require.True(t, release(first))
			third := takeOne()
			require.True(t, third.Allowed)
			f.back()
			require.True(t, release(second))
			require.True(t, release(third))
		}
		require.True(t, release(held))
	})
}

// TestLateTakesAreReleased checks that the unit of a take that was too late for its caller does not stay in use.
func TestLateTakesAreReleased(t *testing.T) {
	for _, ignoreContext := range []bool{false, true} {
		withFailover(t, FailoverOptions{}, func(t *testing.T, f *failoverTest) {
			r, minute := ratelimit.Concurrent(1), ratelimit.PerMinute(5)
			f.store.ignoreContext = ignoreContext
			f.store.setFailure(func(context.Context) error { <-time.After(4 * time.Second); return nil })
			_, _, err := f.take(r, "k", 1)
			require.ErrorAs(t, err, new(*UnavailableError))
			_, err = f.Do(t.Context(), []ratelimit.Op{take(minute, "both", 1), take(r, "both", 1)})
			require.ErrorAs(t, err, new(*UnavailableError))
			<-time.After(10 * time.Second)
			require.Zero(t, f.Stats().Abandoned)
			f.store.setFailure(nil)
			for _, key := range []string{"k", "both"} {
				res, _, err := f.take(r, key, 1)
				require.NoError(t, err)
				require.True(t, res.Allowed)
			}
		})
	}
}
