package lazy_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

func TestRule5StandAloneValueForgetsAnError(t *testing.T) {
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		runs := 0
		v := lazy.New(func(context.Context) (int, error) {
			if runs++; runs == 1 {
				return 7, errBoom
			}
			return runs, nil
		})
		_, err := v.Get(ctx)
		require.ErrorIs(t, err, errBoom)
		_, _, ok := v.Peek()
		require.False(t, ok)
		requireGet(t, ctx, v, 2)
	}
}

func TestRule5ScopesValueKeepsItsError(t *testing.T) {
	s := lazy.NewScope(apart(t))
	defer s.Close()
	for _, ctx := range []context.Context{s.Context(), t.Context()} {
		runs := 0
		v := lazy.In(s, func(context.Context) (int, error) { runs++; return 7, errBoom })
		for range 2 {
			got, err := v.Get(ctx)
			require.ErrorIs(t, err, errBoom)
			require.Equal(t, 7, got, "a value beside the error stays")
		}
		require.Equal(t, 1, runs)
		v.Reset()
		require.ErrorIs(t, v.Wait(ctx), errBoom)
		require.Equal(t, 2, runs)
	}
}

func TestRule5CancellationOfTheAttemptIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		for _, cancelled := range []error{context.Canceled, fmt.Errorf("dial: %w", context.DeadlineExceeded)} {
			runs := 0
			v := lazy.In(s, func(context.Context) (int, error) {
				if runs++; runs == 1 {
					return 0, cancelled
				}
				return runs, nil
			})
			require.ErrorIs(t, v.Wait(t.Context()), cancelled)
			requireGet(t, t.Context(), v, 2)
		}
		v := lazy.Go(s, slow(time.Hour, "v"))
		synctest.Wait()
		require.NoError(t, s.Close())
		_, err, ok := v.Peek()
		require.True(t, ok, "the owner's own end is kept")
		require.ErrorIs(t, err, lazy.ErrClosed)
	})
}

func TestOwnCancellation(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		owner context.Context
		err   error
		own   bool
	}{
		{context.Background(), context.Canceled, true},
		{context.Background(), fmt.Errorf("x: %w", context.DeadlineExceeded), true},
		{context.Background(), errBoom, false},
		{context.Background(), nil, false},
		{context.Background(), brokenError{}, false},
		{ended, context.Canceled, false},
		{ended, errBoom, false},
	} {
		require.Equal(t, c.own, lazy.OwnCancellation(c.owner, c.err), "%v", c.err)
	}
}

// brokenError panics in its Is method.
type brokenError struct{}

func (brokenError) Error() string { return "broken" }
func (brokenError) Is(error) bool { panic("Is") }
