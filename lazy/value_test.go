package lazy_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

var errBoom = errors.New("boom")

func TestGetWithAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		runs := 0
		fn := func(context.Context) (int, error) { runs++; return runs, nil }
		for _, v := range []*lazy.Value[int]{lazy.New(fn), lazy.In(s, fn)} {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errBoom)
			require.ErrorIs(t, v.Wait(ctx), errBoom)
			require.ErrorIs(t, lazy.All(ctx, v), errBoom)
			synctest.Wait()
			require.Zero(t, runs, "nothing begins for a caller that has left")
			v.Set(5)
			requireGet(t, ctx, v, 5)
		}
	})
}

// panicky is a context whose Value panics.
type panicky struct{ context.Context }

func (panicky) Value(any) any { panic(errBoom) }

// If a method of the caller's context panics, Get has not begun a computation that others could join.
func TestGetWithAContextThatPanics(t *testing.T) {
	bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
		v := lazy.New(slow(0, 1))
		if s != nil {
			v = lazy.In(s, slow(0, 1))
		}
		require.Equal(t, errBoom, catch(func() { _, _ = v.Get(panicky{ctx}) }))
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		requireGet(t, ctx, v, 1)
	})
}

func TestPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := lazy.New(slow(time.Second, 1))
		_, _, ok := v.Peek()
		require.False(t, ok)
		go func() { _ = v.Wait(t.Context()) }()
		synctest.Wait()
		_, _, ok = v.Peek()
		require.False(t, ok, "Peek does not wait")
		require.NoError(t, v.Wait(t.Context()))
		got, err, ok := v.Peek()
		require.Equal(t, []any{1, nil, true}, []any{got, err, ok})
	})
}

func TestSetOvertakesAComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		stopped := make(chan error, 1)
		fn := func(ctx context.Context) (string, error) {
			err := pause(ctx, time.Minute)
			stopped <- err
			return "computed", nil
		}
		for name, v := range map[string]*lazy.Value[string]{"stand-alone": lazy.New(fn), "of a scope": lazy.In(s, fn)} {
			began := time.Now()
			got := make(chan string, 3)
			for range cap(got) {
				go func() {
					val, _ := v.Get(t.Context())
					got <- val
				}()
			}
			synctest.Wait()
			v.Set("set")
			for range cap(got) {
				require.Equal(t, "set", <-got)
			}
			require.Zero(t, time.Since(began), "waiters do not wait for what is dropped")
			err := <-stopped
			require.Equal(t, name == "stand-alone", err != nil, "only what has no owner is cancelled: %v", err)
			synctest.Wait()
			requireGet(t, t.Context(), v, "set")
		}
	})
}

// The caller on whose goroutine the function runs also gets the value that was set.
func TestSetOvertakesAnInlineComputation(t *testing.T) {
	var v *lazy.Value[string]
	v = lazy.New(func(context.Context) (string, error) {
		v.Set("set")
		return "computed", errBoom
	})
	requireGet(t, context.Background(), v, "set")
}

func TestResetDetachesAComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		v := lazy.New(func(ctx context.Context) (int32, error) {
			n := runs.Add(1)
			return n, pause(ctx, time.Second)
		})
		old := make(chan int32, 1)
		go func() {
			n, _ := v.Get(t.Context())
			old <- n
		}()
		<-time.After(time.Second / 2)
		v.Reset()
		_, _, ok := v.Peek()
		require.False(t, ok)
		requireGet(t, t.Context(), v, 2)
		require.EqualValues(t, 1, <-old, "a waiter gets the outcome that it waited for")
		requireGet(t, t.Context(), v, 2)
	})
}

// A computation that Reset has detached is still cancelled when every waiter has left.
func TestResetAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		v := lazy.New(func(ctx context.Context) (int, error) {
			ended <- pause(ctx, time.Hour)
			return 0, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = v.Wait(ctx) }()
		synctest.Wait()
		v.Reset()
		cancel()
		require.EqualError(t, <-ended, "lazy: every waiter left")
	})
}

func TestZeroValue(t *testing.T) {
	var v lazy.Value[int]
	_, _, ok := v.Peek()
	require.False(t, ok)
	require.EqualError(t, v.Wait(t.Context()), "lazy: the value has no function and was not set")
	require.Equal(t, "value", v.Name())
	v.Reset()
	v.Set(3)
	requireGet(t, t.Context(), &v, 3)
}
