package ratelimit_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// refunding charges a request. It then calls f with a function that refunds the charge, and with a function that cancels
// the request's context, as if the client had left.
func (q requests) refunding(f func(refund func() (bool, error), leave func())) {
	q.Helper()
	ctx, leave := context.WithCancel(q.Context())
	defer leave()
	c := reqctx.New(ctx, q.reg)
	c.SetRequest(httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	p := q.policies[0]
	require.NoError(q, p.Require(c))
	f(func() (bool, error) { return p.Refund(c) }, leave)
	require.NoError(q, c.Finish())
}

func TestRefundWhenTheClientHasLeft(t *testing.T) {
	q := provide(t, ipPolicy("ip", 5))
	q.refunding(func(refund func() (bool, error), leave func()) {
		leave()
		require.True(t, must(refund()))
	})
	res, _ := q.take("ip")
	require.EqualValues(t, 4, res.Remaining)
}

func TestRefundIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := provide(t, ipPolicy("ip", 5))
		q.refunding(func(refund func() (bool, error), _ func()) {
			q.store.Store = storespy.Func(func(ctx context.Context, _ []ratelimit.Op) ([]ratelimit.Result, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			began := time.Now()
			_, err := refund()
			require.ErrorIs(t, err, ratelimit.ErrStore)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 5*time.Second, time.Since(began))
		})
	})
}

func TestRefundThatPanics(t *testing.T) {
	q := provide(t, ipPolicy("ip", 5))
	q.refunding(func(refund func() (bool, error), _ func()) {
		q.store.Store = storespy.Func(func(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) { panic("store") })
		require.PanicsWithValue(t, "store", func() { _, _ = refund() })
		ok, err := refund()
		require.ErrorContains(t, err, "panicked")
		require.False(t, ok)
	})
}
