package lazy_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

func TestAllWaitsInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		a, b, c := lazy.New(slow(time.Second, 1)), lazy.In(s, slow(3*time.Second, "b")), lazy.Go(s, slow(time.Second, 2.5))
		began := time.Now()
		require.NoError(t, lazy.All(t.Context(), a, b, c))
		require.Equal(t, 3*time.Second, time.Since(began))
		got, err, ok := b.Peek()
		require.Equal(t, []any{"b", nil, true}, []any{got, err, ok})
		require.NoError(t, lazy.All(t.Context()))
	})
}

func TestAllIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		ws := make([]lazy.Waiter, 200)
		for i := range ws {
			ws[i] = lazy.New(func(ctx context.Context) (int, error) {
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer now.Add(-1)
				return 0, pause(ctx, time.Second)
			})
		}
		require.NoError(t, lazy.All(t.Context(), ws...))
		require.EqualValues(t, lazy.Parallel, most.Load())
	})
}

func TestAllReturnsTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		var cancelled atomic.Bool
		alone := lazy.New(func(ctx context.Context) (int, error) {
			err := pause(ctx, time.Hour)
			cancelled.Store(err != nil)
			return 0, err
		})
		shared := lazy.New(slow(2*time.Second, "shared"))
		go func() { _ = shared.Wait(t.Context()) }()
		synctest.Wait()
		owned := lazy.In(s, slow(2*time.Second, "owned"))
		fails := lazy.New(func(ctx context.Context) (int, error) {
			_ = pause(ctx, time.Second)
			return 0, errBoom
		})
		began := time.Now()
		require.ErrorIs(t, lazy.All(t.Context(), alone, shared, owned, fails), errBoom)
		require.Equal(t, time.Second, time.Since(began))
		synctest.Wait()
		require.True(t, cancelled.Load(), "a value without waiters is cancelled")
		<-time.After(time.Second)
		synctest.Wait()
		for _, v := range []*lazy.Value[string]{shared, owned} {
			_, err, ok := v.Peek()
			require.True(t, ok, "the others go on")
			require.NoError(t, err)
		}
	})
}

// After an error, All does not begin the values that wait for their turn.
func TestAllBeginsNothingAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := lazy.New(func(ctx context.Context) (int, error) {
			_ = pause(ctx, time.Second)
			return 0, errBoom
		})
		never := lazy.New(func(context.Context) (int, error) { t.Error("began"); return 0, nil })
		ws := append(slices.Repeat([]lazy.Waiter{fails}, lazy.Parallel), never, never)
		require.ErrorIs(t, lazy.All(t.Context(), ws...), errBoom)
	})
}

func TestAllEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBoom)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, lazy.All(ctx, slices.Repeat([]lazy.Waiter{lazy.New(slow(time.Hour, 1))}, 2*lazy.Parallel)...), errBoom)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, lazy.All(ctx, lazy.New(slow(time.Hour, 1))), errBoom)
	})
}

func TestAllPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := lazy.New(func(ctx context.Context) (int, error) {
			<-time.After(time.Second)
			panic(errBoom)
		})
		began := time.Now()
		p := catch(func() { _ = lazy.All(t.Context(), lazy.New(slow(time.Hour, 1)), later) })
		require.IsType(t, (*lazy.PanicError)(nil), p)
		require.ErrorIs(t, p.(error), errBoom)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// After All has returned, the caller no longer waits for the other values. If they need the caller, that is not a cycle.
func TestAllTakesItsWaitsBack(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			s := newScope(t)
			var user *lazy.Value[int]
			asked := make(chan bool)
			org := lazy.In(s, func(ctx context.Context) (int, error) {
				<-asked
				return user.Get(ctx)
			})
			user = lazy.In(s, func(ctx context.Context) (int, error) {
				fails := lazy.New(func(context.Context) (int, error) { return 0, errBoom })
				_ = lazy.All(ctx, append(slices.Repeat([]lazy.Waiter{org}, 30), fails)...)
				close(asked)
				return 1, pause(ctx, time.Second)
			})
			go func() { _ = org.Wait(t.Context()) }()
			require.NoError(t, user.Wait(t.Context()))
			require.NoError(t, org.Wait(t.Context()))
		})
	}
}
