package lazy_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

func TestGetAllIsOneCall(t *testing.T) {
	bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
		var c tally
		b := lazy.BatchIn(s, "", c.squares)
		got, err := b.GetAll(ctx, []int{3, 1, 2, 1, 3})
		require.NoError(t, err)
		require.Equal(t, []int{9, 1, 4, 1, 9}, got, "in the order of the keys")
		require.Equal(t, [][]int{{3, 1, 2}}, c.seen(), "each key once")
	})
}

func TestGetAllWithoutKeys(t *testing.T) {
	var c tally
	b := lazy.NewBatch(c.squares)
	got, err := b.GetAll(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, got)
	require.Empty(t, c.seen())
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	_, err = b.GetAll(ended, nil)
	require.Equal(t, errBoom, err)
}

// GetAll loads only the keys that the scope's batch has not loaded and is not loading.
func TestGetAllAsksForTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScopeOf(t, t.Context())
		c := tally{takes: time.Second}
		b := lazy.BatchIn(s, "", c.squares)
		ctx := s.Context()
		_, err := b.GetAll(ctx, []int{1, 2})
		require.NoError(t, err)
		began := time.Now()
		loading := make(chan error)
		go func() { _, err := b.Get(ctx, 3); loading <- err }()
		synctest.Wait()
		got, err := b.GetAll(ctx, []int{4, 3, 2, 1, 5})
		require.NoError(t, err)
		require.Equal(t, []int{16, 9, 4, 1, 25}, got)
		require.Equal(t, time.Second, time.Since(began), "both calls at the same time")
		require.NoError(t, <-loading)
		require.Equal(t, [][]int{{1, 2}, {3}, {4, 5}}, c.seen())
		for key := range 5 {
			_, err := b.Get(ctx, key+1)
			require.NoError(t, err)
		}
		require.Len(t, c.seen(), 3)
	})
}

func TestBatchHitDoesNotAllocate(t *testing.T) {
	s := newScope(t)
	b := lazy.BatchIn(s, "", new(tally).squares)
	ctx := s.Context()
	_, err := b.Get(ctx, 1)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = b.Get(ctx, 1) }))
}
