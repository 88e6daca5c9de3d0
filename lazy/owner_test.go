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

func TestRule3WaiterLeavesWithItsOwnCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		for name, v := range map[string]*lazy.Value[string]{
			"stand-alone": lazy.New(slow(time.Second, "v")),
			"of a scope":  lazy.In(s, slow(time.Second, "v")),
		} {
			began := time.Now()
			errGone := errors.New("gone")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errGone)
			go func() { // begins the computation, and leaves first
				err := v.Wait(ctx)
				if !errors.Is(err, errGone) || time.Since(began) != 100*time.Millisecond {
					t.Errorf("%s: %v after %v", name, err, time.Since(began))
				}
			}()
			synctest.Wait()
			got, err := v.Get(t.Context()) // stays
			require.NoError(t, err, name)
			require.Equal(t, "v", got)
			require.Equal(t, time.Second, time.Since(began), "the computation went on")
			cancel()
		}
	})
}

func TestRule3StandAloneValueIsCancelledWhenTheLastWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		ended := make(chan error, 2)
		v := lazy.New(func(ctx context.Context) (int32, error) {
			n := runs.Add(1)
			if n == 1 {
				<-ctx.Done()
				ended <- context.Cause(ctx)
				<-time.After(time.Hour) // is slow to stop
				return 0, ctx.Err()
			}
			return n, nil
		})
		one, leaveOne := context.WithCancel(t.Context())
		two, leaveTwo := context.WithCancel(t.Context())
		go func() { _ = v.Wait(one) }()
		go func() { _ = v.Wait(two) }()
		synctest.Wait()
		leaveTwo()
		synctest.Wait()
		require.Empty(t, ended, "one of two is left")
		leaveOne()
		synctest.Wait()
		require.EqualError(t, <-ended, "lazy: every waiter left")
		got, err := v.Get(t.Context()) // while the first one is still running
		require.NoError(t, err)
		require.EqualValues(t, 2, got)
		<-time.After(2 * time.Hour)
		requireGet(t, t.Context(), v, 2)
	})
}

func TestRule3ResultOfAnAbandonedComputationIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		v := lazy.New(func(context.Context) (int, error) {
			runs++
			<-time.After(time.Minute) // does not notice that it is cancelled
			return runs, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, v.Wait(ctx), context.DeadlineExceeded)
		<-time.After(time.Hour)
		_, _, ok := v.Peek()
		require.False(t, ok)
		requireGet(t, t.Context(), v, 2)
	})
}

// A caller that arrives while the last waiter leaves begins a new computation. A computation cannot be joined any more
// when its cancellation is visible.
func TestRule3NoCallerJoinsADoomedComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v *lazy.Value[int]
		again := make(chan error, 1)
		var runs int
		v = lazy.New(func(ctx context.Context) (int, error) {
			if runs++; runs > 1 {
				return runs, nil
			}
			// The function is called as soon as the computation is cancelled.
			context.AfterFunc(ctx, func() { again <- v.Wait(context.Background()) })
			<-ctx.Done()
			return 0, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, v.Wait(ctx), context.DeadlineExceeded)
		require.NoError(t, <-again)
	})
}

func TestRule3ScopesValueRunsUnderTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		s := newScopeOf(t, context.WithValue(t.Context(), key{}, "owner"))
		v := lazy.In(s, func(ctx context.Context) (any, error) {
			return ctx.Value(key{}), pause(ctx, time.Minute)
		})
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "caller"), time.Second)
		defer cancel()
		require.ErrorIs(t, v.Wait(ctx), context.DeadlineExceeded) // the only waiter
		<-time.After(time.Minute)
		got, err, ok := v.Peek()
		require.True(t, ok, "the computation went on")
		require.NoError(t, err)
		require.Equal(t, "owner", got)
	})
}

func TestRule3StandAloneValueKeepsTheFirstCallersValues(t *testing.T) {
	type key struct{}
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		v := lazy.New(func(ctx context.Context) (any, error) { return ctx.Value(key{}), nil })
		requireGet(t, context.WithValue(ctx, key{}, "caller"), v, "caller")
	}
}

func TestRule4RunsInlineUnlessTheCallerCouldLeaveEarlier(t *testing.T) {
	type key struct{}
	parent := apart(t)
	s := lazy.NewScope(parent)
	defer s.Close()
	derived, cancel := context.WithCancel(s.Context())
	defer cancel()
	where := func(context.Context) (int, error) { return goroutine(), nil }
	alone := func() *lazy.Value[int] { return lazy.New(where) }
	owned := func() *lazy.Value[int] { return lazy.In(s, where) }
	for _, c := range []struct {
		name   string
		v      *lazy.Value[int]
		ctx    context.Context
		inline bool
	}{
		{"stand-alone, cannot leave", alone(), context.Background(), true},
		{"stand-alone, cannot leave, with a value", alone(), context.WithValue(context.Background(), key{}, 1), true},
		{"stand-alone, can leave", alone(), t.Context(), false},
		{"of a scope, ends with it", owned(), s.Context(), true},
		{"of a scope, ends with it, with a value", owned(), context.WithValue(s.Context(), key{}, 1), true},
		{"of a scope, can leave", owned(), derived, false},
		{"of a scope, outlives it", owned(), parent, true},
		{"of a scope, never ends", owned(), context.Background(), true},
	} {
		ran, err := c.v.Get(c.ctx)
		require.NoError(t, err, c.name)
		require.Equal(t, c.inline, ran == goroutine(), c.name)
	}
	nested := lazy.In(s, func(ctx context.Context) (bool, error) {
		ran, err := owned().Get(ctx)
		return ran == goroutine(), err
	})
	inline, err := nested.Get(t.Context())
	require.NoError(t, err)
	require.True(t, inline, "a function passes on a context that ends with the scope")
}
