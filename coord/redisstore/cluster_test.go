package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestFailoverLosesUnreplicatedWrites checks the documented limit of a failover: writes that the replica has not
// received are lost. A used token can be used again, and a lease can have two holders. The second holder has the
// larger number.
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

// TestSlotMigration uses tokens and leases after a part of their slot has moved.
func TestSlotMigration(t *testing.T) {
	t.Parallel()
	c := testhost.StartCluster(t)
	s := newStore(t, c.Client(nil), redisstore.Options{Prefix: "{one slot}:", Timeout: patient.Timeout})
	tokens, l := newTokens(t, s), newLeases(t, s, coord.LeaseOptions{Lifetime: time.Minute, MaxLifetime: time.Hour})
	names, held := strings.Split("abcdefgh", ""), make(map[string]*coord.Lease)
	for _, name := range names {
		require.NoError(t, tokens.Issue(t.Context(), name, nil, time.Hour))
		held[name] = acquired(t, l, name)
	}
	slot := c.Slot("{one slot}")
	move := c.BeginMove(slot, c.Masters(slot)[1])
	require.Equal(t, 8, move.MoveKeys(8)) // the slot has 16 keys
	for _, name := range names {
		must(tokens.Use(t.Context(), name, ""))
		require.NoError(t, held[name].Renew(t.Context()))
		require.ErrorIs(t, second(l.Acquire(t.Context(), name)), coord.ErrHeld)
	}
	move.End()
	for _, name := range names {
		require.ErrorIs(t, second(tokens.Use(t.Context(), name, "")), coord.ErrUsed)
		require.NoError(t, held[name].Release())
		require.Greater(t, acquired(t, l, name).Number(), held[name].Number())
	}
}
