package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestFailoverLosesUnreplicatedWrites checks the documented limit: writes that the replica has not received are undone. A
// used token can be used again, and a lease has two holders, of whom the second has the larger number.
func TestFailoverLosesUnreplicatedWrites(t *testing.T) {
	t.Parallel()
	host := testhost.StartSentinel(t, testhost.Durable...)
	s := newStore(t, host.Client(nil), patient)
	tokens := newTokens(t, s)
	l := newLeases(t, s, coord.LeaseOptions{Lifetime: time.Minute})
	kept, undone, late := coord.NewID(), coord.NewID(), coord.NewID()
	for _, id := range []string{kept, undone} {
		require.NoError(t, tokens.Issue(t.Context(), id, nil, time.Hour))
	}
	must(tokens.Use(t.Context(), kept, ""))
	lease := acquired(t, l, "kept")
	var lost *coord.Lease
	host.LoseWrites(func() {
		lost = acquired(t, l, "lost")
		require.NoError(t, tokens.Issue(t.Context(), late, nil, time.Hour))
		must(tokens.Use(t.Context(), undone, ""))
	})
	eventually := func(want error, ask func() error) {
		t.Helper()
		var err error
		require.Eventually(t, func() bool { err = ask(); return !errors.Is(err, coord.ErrStore) }, 10*time.Second, 10*time.Millisecond)
		require.ErrorIs(t, err, want)
	}
	eventually(coord.ErrUsed, func() error { return second(tokens.Use(t.Context(), kept, "")) })
	eventually(coord.ErrUnknown, func() error { return second(tokens.Use(t.Context(), late, "")) })
	eventually(nil, func() error { return second(tokens.Use(t.Context(), undone, "")) })
	eventually(coord.ErrHeld, func() error { return second(l.Acquire(t.Context(), "kept")) })
	var heir *coord.Lease
	eventually(nil, func() (err error) { heir, err = l.Acquire(t.Context(), "lost"); return err })
	require.NoError(t, lost.Context().Err(), "two at once")
	require.Greater(t, heir.Number(), lost.Number())
	eventually(coord.ErrLost, lost.Release)
	eventually(nil, lease.Release)
}
