package layer

import (
	"testing"

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
