package memstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
)

// TestNumbersAheadOfTheClock checks that the numbers of a forgotten user continue to grow if they are ahead of the
// clock.
func TestNumbersAheadOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(Options{})
		require.NoError(t, err)
		l, err := coord.NewLeases(m, coord.LeaseOptions{Lifetime: time.Second})
		require.NoError(t, err)
		lease, err := l.Acquire(t.Context(), "u")
		require.NoError(t, err)
		require.NoError(t, lease.Release())
		ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
		m.leases["u"].number = ahead
		<-time.After(2 * time.Hour)
		_, err = m.Inspect(t.Context(), coord.TokenKey{}) // each call removes the users and tokens that have expired
		require.ErrorIs(t, err, coord.ErrUnknown)
		require.Zero(t, m.Len(), "forgotten")
		for i := range int64(2) {
			lease, err = l.Acquire(t.Context(), "u")
			require.NoError(t, err)
			require.Equal(t, ahead+1+i, lease.Number())
			require.NoError(t, lease.Release())
		}
	})
}

// TestClockGoesBackAfterALease checks what MinInterval means if the last lease began later than now, because the
// clock was set back.
func TestClockGoesBackAfterALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(Options{})
		require.NoError(t, err)
		r := coord.LeaseRequest{Name: "one", Lifetime: time.Second}
		_, err = m.Acquire(t.Context(), "u", r)
		require.NoError(t, err)
		require.NoError(t, m.Release(t.Context(), "u", r))
		m.leases["u"].since = time.Now().Add(time.Hour)
		often := r
		often.MinInterval = time.Minute
		_, err = m.Acquire(t.Context(), "u", often)
		var denied *coord.DeniedError
		require.ErrorAs(t, err, &denied)
		require.Equal(t, time.Minute, denied.RetryAfter, "the interval and not the step of the clock")
		_, err = m.Acquire(t.Context(), "u", r)
		require.NoError(t, err, "without an interval")
	})
}
