package lazy_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

var errBoom = errors.New("boom")

// A value takes 50 ms and 100 goroutines read it: one call, the same value for
// all. Another value of the same function has its own.
func TestRule1OneComputationIsShared(t *testing.T) {
	for name, ofScope := range map[string]bool{"stand-alone": false, "of a scope": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := lazy.NewScope(apart(t))
				var calls atomic.Int32
				fn := func(ctx context.Context) (*int, error) {
					calls.Add(1)
					return new(int), pause(ctx, 50*time.Millisecond)
				}
				first, second := lazy.New(fn), lazy.New(fn)
				if ofScope {
					first, second = lazy.In(s, fn), lazy.In(s, fn)
				}
				began := time.Now()
				got := make([]*int, 100)
				var wg sync.WaitGroup
				for i := range got {
					wg.Go(func() {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						p, err := first.Get(ctx)
						if err == nil {
							got[i] = p
						}
					})
				}
				wg.Wait()
				require.Equal(t, 50*time.Millisecond, time.Since(began))
				require.EqualValues(t, 1, calls.Load())
				require.NotNil(t, got[0])
				for _, p := range got {
					require.Same(t, got[0], p)
				}
				other, err := second.Get(t.Context())
				require.NoError(t, err)
				require.NotSame(t, got[0], other)
				require.EqualValues(t, 2, calls.Load())
				require.NoError(t, s.Close())
			})
		})
	}
}

// A function fails while two wait: both get its error, and the process lives.
func TestRule1AnErrorIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		v := lazy.New(func(ctx context.Context) (int, error) {
			calls.Add(1)
			_ = pause(ctx, time.Second)
			return 0, fmt.Errorf("load: %w", errBoom)
		})
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = v.Wait(t.Context()) })
		}
		wg.Wait()
		require.ErrorIs(t, errs[0], errBoom)
		require.ErrorIs(t, errs[1], errBoom)
		require.EqualValues(t, 1, calls.Load())
	})
}

func TestRule2AHitDoesNotAllocate(t *testing.T) {
	ctx := t.Context()
	s := lazy.NewScope(ctx)
	defer s.Close()
	for _, v := range []*lazy.Value[string]{lazy.New(slow(0, "v")), lazy.In(s, slow(0, "v"))} {
		require.NoError(t, v.Wait(ctx))
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if got, err := v.Get(ctx); got != "v" || err != nil {
				t.Error(got, err)
			}
		}))
		require.Zero(t, testing.AllocsPerRun(100, func() { v.Start(ctx) }))
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = v.Peek() }))
	}
}

// What is kept is the value, and not the computation with the first caller's
// context behind it.
func TestAHitKeepsNothingButTheValue(t *testing.T) {
	type key struct{}
	collected := make(chan bool)
	v := lazy.New(slow(0, "v"))
	func() {
		big := new([1 << 10]int)
		runtime.AddCleanup(big, func(c chan bool) { close(c) }, collected)
		require.NoError(t, v.Wait(context.WithValue(context.Background(), key{}, big)))
	}()
	for i := 0; ; i++ {
		runtime.GC()
		select {
		case <-collected:
			got, err := v.Get(t.Context())
			require.NoError(t, err)
			require.Equal(t, "v", got)
			return
		case <-time.After(10 * time.Millisecond):
			require.Less(t, i, 500, "the first caller's context is still reachable")
		}
	}
}

func TestRule3AWaiterLeavesWithItsOwnCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		for name, v := range map[string]*lazy.Value[string]{
			"stand-alone": lazy.New(slow(time.Second, "v")),
			"of a scope":  lazy.In(s, slow(time.Second, "v")),
		} {
			began := time.Now()
			errGone := errors.New("gone")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errGone)
			go func() { // begins, and leaves first
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
		require.NoError(t, s.Close())
	})
}

func TestRule3AStandAloneValueIsCancelledWhenTheLastWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		ended := make(chan error, 2)
		v := lazy.New(func(ctx context.Context) (int32, error) {
			n := runs.Add(1)
			if n == 1 {
				<-ctx.Done()
				ended <- context.Cause(ctx)
				<-time.After(time.Hour) // takes its time to stop
				return 0, ctx.Err()
			}
			return n, nil
		})
		one, leaveOne := context.WithCancel(t.Context())
		two, leaveTwo := context.WithCancel(t.Context())
		v.Start(one)
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
		got, err = v.Get(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, got, "the abandoned one changes nothing")
	})
}

// Whoever comes at the moment when the last waiter leaves begins anew: the value
// is detached before the cancellation is seen by anybody.
func TestRule3NobodyJoinsADoomedComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v *lazy.Value[int]
		again := make(chan error, 1)
		var runs int
		v = lazy.New(func(ctx context.Context) (int, error) {
			if runs++; runs > 1 {
				return runs, nil
			}
			// The first thing to happen when the computation is cancelled.
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

func TestRule3AScopesValueRunsUnderTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		s := lazy.NewScope(context.WithValue(t.Context(), key{}, "owner"))
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
		require.NoError(t, s.Close())
	})
}

func TestRule3AStandAloneValueKeepsTheFirstCallersValues(t *testing.T) {
	type key struct{}
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		v := lazy.New(func(ctx context.Context) (any, error) { return ctx.Value(key{}), nil })
		got, err := v.Get(context.WithValue(ctx, key{}, "caller"))
		require.NoError(t, err)
		require.Equal(t, "caller", got)
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

func TestRule4TheScopeTracksWhatRuns(t *testing.T) {
	for name, ctx := range map[string]func(s *lazy.Scope) context.Context{
		"inline":         (*lazy.Scope).Context,
		"on a goroutine": func(*lazy.Scope) context.Context { return context.Background() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := lazy.NewScope(apart(t))
				v := lazy.In(s, func(context.Context) (int, error) {
					<-time.After(time.Minute) // does not listen
					return 1, nil
				})
				go func() { _ = v.Wait(ctx(s)) }()
				synctest.Wait()
				began := time.Now()
				require.NoError(t, s.Close())
				require.Equal(t, time.Minute, time.Since(began))
			})
		})
	}
}

func TestRule5AStandAloneValueForgetsAnError(t *testing.T) {
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
		got, err := v.Get(ctx)
		require.NoError(t, err)
		require.Equal(t, 2, got)
	}
}

func TestRule5AScopesValueKeepsItsError(t *testing.T) {
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

func TestRule5ACancellationOfTheAttemptIsNotKept(t *testing.T) {
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
			got, err := v.Get(t.Context())
			require.NoError(t, err)
			require.Equal(t, 2, got)
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

// brokenError panics when it is asked what it is.
type brokenError struct{}

func (brokenError) Error() string { return "broken" }
func (brokenError) Is(error) bool { panic("Is") }

func TestAnErrorThatPanicsWhenAskedReachesTheWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		v := lazy.Go(s, func(ctx context.Context) (int, error) {
			_ = pause(ctx, time.Second)
			return 0, brokenError{}
		})
		_, err, p := get(t.Context(), v)
		require.Nil(t, p)
		require.Equal(t, brokenError{}, err)
		require.NoError(t, s.Close())
	})
}

// A function and the contexts and errors that it meets may use the value and its
// scope: if a mutex were held, these would block for ever.
func TestRule8NoMutexIsHeldAcrossUserCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		var v *lazy.Value[int]
		reenter := func() {
			_, _, _ = v.Peek()
			v.Start(t.Context())
			s.OnClose(func() error { return nil })
			_ = s.Spawn("nothing", func(context.Context) {})
		}
		runs := 0
		v = lazy.In(s, func(context.Context) (int, error) {
			runs++
			reenter()
			return runs, callingError{reenter}
		})
		ctx := callingContext{t.Context(), reenter}
		got, err := v.Get(ctx)
		require.EqualError(t, err, "calling")
		require.Equal(t, 1, got)
		v.Reset()
		v.Start(ctx)
		synctest.Wait()
		require.Equal(t, 2, runs)
		require.NoError(t, s.Close())

		v = lazy.New(func(context.Context) (int, error) {
			v.Set(1)
			v.Reset()
			v.Set(2)
			return 3, nil
		})
		got, err = v.Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, got, "what was set first released the waiters")

		alone := lazy.New(func(ctx context.Context) (int, error) { return 3, pause(ctx, time.Second) })
		ctx.fn = func() { _, _, _ = alone.Peek() }
		alone.Start(ctx)
		got, err = alone.Get(ctx)
		require.NoError(t, err)
		require.Equal(t, 3, got)
	})
}

// callingContext calls fn in each of its methods.
type callingContext struct {
	context.Context
	fn func()
}

func (c callingContext) Done() <-chan struct{} { c.fn(); return c.Context.Done() }
func (c callingContext) Err() error            { c.fn(); return c.Context.Err() }
func (c callingContext) Value(key any) any     { c.fn(); return c.Context.Value(key) }

// callingError calls fn when it is asked what it is.
type callingError struct{ fn func() }

func (callingError) Error() string   { return "calling" }
func (e callingError) Is(error) bool { e.fn(); return false }

// Waiters block on channels: a bubble sees that they are blocked, so that its
// clock advances.
func TestRule8WaitersBlockOnChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := lazy.New(slow(24*time.Hour, 1))
		for range 10 {
			go func() { _ = v.Wait(t.Context()) }()
		}
		synctest.Wait()
		require.NoError(t, v.Wait(t.Context()))
	})
}

func TestGetWithAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		runs := 0
		fn := func(context.Context) (int, error) { runs++; return runs, nil }
		for _, v := range []*lazy.Value[int]{lazy.New(fn), lazy.In(s, fn)} {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errBoom)
			require.ErrorIs(t, v.Wait(ctx), errBoom)
			v.Start(ctx)
			synctest.Wait()
			require.Zero(t, runs, "nothing begins for who is gone")
			v.Set(5)
			got, err := v.Get(ctx)
			require.NoError(t, err, "but a hit is a hit")
			require.Equal(t, 5, got)
		}
		require.NoError(t, s.Close())
	})
}

func TestPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := lazy.New(slow(time.Second, 1))
		_, _, ok := v.Peek()
		require.False(t, ok)
		v.Start(t.Context())
		synctest.Wait()
		_, _, ok = v.Peek()
		require.False(t, ok, "Peek does not wait")
		require.NoError(t, v.Wait(t.Context()))
		got, err, ok := v.Peek()
		require.Equal(t, []any{1, nil, true}, []any{got, err, ok})
	})
}

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		v := lazy.New(func(ctx context.Context) (int32, error) {
			return runs.Add(1), pause(ctx, time.Second)
		})
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		v.Start(ctx)
		v.Start(ctx)
		require.Zero(t, time.Since(began))
		<-time.After(time.Second)
		require.NoError(t, v.Wait(t.Context()))
		require.Equal(t, time.Second, time.Since(began), "it began at Start")
		require.EqualValues(t, 1, runs.Load())
		cancel()

		v.Reset()
		ctx, cancel = context.WithCancel(t.Context())
		v.Start(ctx)
		v.Start(ctx)
		synctest.Wait()
		cancel() // both leave
		synctest.Wait()
		v.Start(context.Background()) // never leaves
		<-time.After(time.Second)
		synctest.Wait()
		got, err, ok := v.Peek()
		require.Equal(t, []any{int32(3), nil, true}, []any{got, err, ok})
	})
}

// Start's watch on its context ends with the computation, not with the context.
func TestStartLetsGoOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := &watchedContext{Context: context.Background(), done: make(chan struct{})}
		for _, overtake := range []bool{false, true} {
			v := lazy.New(slow(time.Second, 1))
			v.Start(ctx)
			v.Start(ctx)
			require.EqualValues(t, 2, ctx.watches.Load())
			if overtake {
				v.Set(2)
			}
			<-time.After(time.Second)
			synctest.Wait()
			require.Zero(t, ctx.watches.Load())
		}
		v := lazy.New(slow(time.Second, 1))
		ctx.watch = func() { v.Set(2) } // it is over before the watch is there
		v.Start(ctx)
		require.Zero(t, ctx.watches.Load())
	})
}

// watchedContext counts what is registered with it.
type watchedContext struct {
	context.Context
	done    chan struct{}
	watches atomic.Int32
	watch   func() // called when something is registered, if not nil
}

func (c *watchedContext) Done() <-chan struct{} { return c.done }

func (c *watchedContext) AfterFunc(func()) func() bool {
	c.watches.Add(1)
	if c.watch != nil {
		c.watch()
	}
	return func() bool { c.watches.Add(-1); return true }
}

func TestSetOvertakesAComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
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
			val, err := v.Get(t.Context())
			require.NoError(t, err)
			require.Equal(t, "set", val)
		}
		require.NoError(t, s.Close())
	})
}

// The caller on whose goroutine the function runs gets what was set, too.
func TestSetOvertakesAnInlineComputation(t *testing.T) {
	var v *lazy.Value[string]
	v = lazy.New(func(context.Context) (string, error) {
		v.Set("set")
		return "computed", errBoom
	})
	got, err := v.Get(context.Background())
	require.NoError(t, err)
	require.Equal(t, "set", got)
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
		got, err := v.Get(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, got)
		require.EqualValues(t, 1, <-old, "who was waiting gets what it waited for")
		got, err = v.Get(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, got, "the old one does not come back")
	})
}

// A computation that Reset has detached is still cancelled when nobody waits.
func TestResetAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		v := lazy.New(func(ctx context.Context) (int, error) {
			ended <- pause(ctx, time.Hour)
			return 0, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		v.Start(ctx)
		synctest.Wait()
		v.Reset()
		cancel()
		require.EqualError(t, <-ended, "lazy: every waiter left")
	})
}

func TestZeroValue(t *testing.T) {
	var v lazy.Value[int]
	v.Start(t.Context())
	_, _, ok := v.Peek()
	require.False(t, ok)
	_, err := v.Get(t.Context())
	require.EqualError(t, err, "lazy: the value has no function and was not set")
	require.Equal(t, "value", v.Name())
	v.Reset()
	v.Set(3)
	got, err := v.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, got)
}
