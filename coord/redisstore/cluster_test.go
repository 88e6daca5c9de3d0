package redisstore_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestSlotMigrationUnderALease moves the slots of tokens and of a lease around a Cluster: each
// token is used once, and the holder notices nothing.
func TestSlotMigrationUnderALease(t *testing.T) {
	t.Parallel()
	c := testhost.StartCluster(t)
	s := newStore(t, c.Client(nil), redisstore.Options{Prefix: "{one slot}:", Timeout: patient.Timeout})
	tokens := newTokens(t, s)
	l := newLeases(t, s, coord.LeaseOptions{Lifetime: time.Minute, MaxLifetime: time.Hour})
	lease := acquired(t, l, "u")
	slot := c.Slot("{one slot}")
	for i := range 4 {
		ids := make([]string, 20)
		for k := range ids {
			ids[k] = coord.NewID()
			require.NoError(t, tokens.Issue(t.Context(), ids[k], nil, time.Minute))
		}
		m := c.BeginMove(slot, c.Masters(slot)[1+i%2])
		m.MoveKeys(10)
		useAll(t, tokens, ids)
		require.NoError(t, lease.Renew(t.Context()))
		m.End()
		for _, id := range ids {
			_, err := tokens.Use(t.Context(), id, "")
			require.ErrorIs(t, err, coord.ErrUsed)
		}
		require.NoError(t, lease.Renew(t.Context()))
		_, err := l.Acquire(t.Context(), "u")
		require.ErrorIs(t, err, coord.ErrHeld)
	}
	require.NoError(t, lease.Release())
}

// useAll uses each token from four goroutines.
func useAll(t *testing.T, tokens *coord.Tokens, ids []string) {
	t.Helper()
	var wg sync.WaitGroup
	used := make(chan string, 4*len(ids))
	for _, id := range ids {
		for range 4 {
			wg.Go(func() {
				switch _, err := tokens.Use(t.Context(), id, ""); {
				case err == nil:
					used <- id
				case !errors.Is(err, coord.ErrUsed):
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	close(used)
	var got []string
	for id := range used {
		got = append(got, id)
	}
	require.ElementsMatch(t, ids, got)
}

// TestFailoverKeepsOneHolder checks the documented limit: writes that the replica has not received are undone.
// A used token can be used again, a lease has two holders, and the second's number is the
// larger one.
func TestFailoverKeepsOneHolder(t *testing.T) {
	t.Parallel()
	host := testhost.StartSentinel(t, testhost.Durable...)
	s := newStore(t, host.Client(nil), patient)
	tokens := newTokens(t, s)
	l := newLeases(t, s, coord.LeaseOptions{Lifetime: time.Minute})
	kept, undone, late := coord.NewID(), coord.NewID(), coord.NewID()
	for _, id := range []string{kept, undone} {
		require.NoError(t, tokens.Issue(t.Context(), id, nil, time.Hour))
	}
	_, err := tokens.Use(t.Context(), kept, "")
	require.NoError(t, err)
	lease := acquired(t, l, "kept")
	var lost *coord.Lease
	host.LoseWrites(func() {
		lost = acquired(t, l, "lost")
		require.NoError(t, tokens.Issue(t.Context(), late, nil, time.Hour))
		_, err := tokens.Use(t.Context(), undone, "")
		require.NoError(t, err)
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
