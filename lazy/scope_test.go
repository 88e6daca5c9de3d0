package lazy_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

func TestGoBeginsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		began := time.Now()
		a := lazy.Go(s, slow(time.Second, "a"))
		b := lazy.Go(s, slow(time.Second, 2))
		requireGet(t, t.Context(), a, "a")
		requireGet(t, s.Context(), b, 2)
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestCloseCancelsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		listens := lazy.Go(s, slow(time.Hour, 1))
		stubborn := lazy.Go(s, func(ctx context.Context) (error, error) { // the error is its value
			<-time.After(time.Minute)
			return context.Cause(ctx), nil
		})
		spawned := false
		require.NoError(t, s.Spawn("task", func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(time.Second)
			spawned = true
			return nil
		}))
		began := time.Now()
		require.NoError(t, s.Close())
		require.True(t, spawned)
		require.Equal(t, time.Minute, time.Since(began))
		require.ErrorIs(t, context.Cause(s.Context()), lazy.ErrClosed)
		require.ErrorIs(t, listens.Wait(t.Context()), lazy.ErrClosed)
		cause, err := stubborn.Get(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, cause, lazy.ErrClosed)
	})
}

func TestClosedScopeComputesNothing(t *testing.T) {
	s := lazy.NewScope(apart(t))
	there := lazy.Go(s, slow(0, "there"))
	require.NoError(t, there.Wait(t.Context()))
	require.NoError(t, s.Close())
	never := func(context.Context) (int, error) { t.Error("computed"); return 0, nil }
	for _, ctx := range []context.Context{s.Context(), t.Context(), context.Background()} {
		require.ErrorIs(t, lazy.In(s, never).Wait(ctx), lazy.ErrClosed)
		require.ErrorIs(t, lazy.Go(s, never).Wait(ctx), lazy.ErrClosed)
		require.ErrorIs(t, lazy.All(ctx, lazy.In(s, never)), lazy.ErrClosed)
	}
	require.ErrorIs(t, s.Spawn("task", func(context.Context) error { t.Error("spawned"); return nil }), lazy.ErrClosed)
	require.NoError(t, s.Close(), "the caller of Spawn has its error")
	requireGet(t, t.Context(), there, "there")
	v := lazy.In(s, never)
	v.Set(4)
	requireGet(t, t.Context(), v, 4)
}

func TestScopeEndsWithItsContext(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	s := lazy.NewScope(parent)
	v := lazy.Go(s, func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	cancel(errBoom)
	require.ErrorIs(t, v.Wait(t.Context()), errBoom)
	require.NoError(t, s.Close())
	require.ErrorIs(t, context.Cause(s.Context()), errBoom)
}

// ending is a context that has ended, but whose derived contexts have not ended yet. Contexts of package context are in
// this state for a moment.
type ending struct {
	context.Context
	err error
}

func (*ending) Done() <-chan struct{} { return make(chan struct{}) }
func (e *ending) Err() error          { return e.err }

func TestScopeEndsWithTheFirstCause(t *testing.T) {
	for _, end := range []func(s *lazy.Scope){(*lazy.Scope).Cancel, func(s *lazy.Scope) { _ = s.Close() }} {
		synctest.Test(t, func(t *testing.T) {
			parent := &ending{Context: context.Background()}
			s := newScopeOf(t, parent)
			parent.err = errBoom
			end(s)
			require.Equal(t, errBoom, context.Cause(s.Context()))
		})
	}
}

func TestCloseTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		require.NoError(t, s.Spawn("task", func(context.Context) error { return errBoom }))
		_ = lazy.Go(s, func(context.Context) (int, error) {
			<-time.After(time.Second)
			return 0, nil
		})
		began := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := s.Close(); err == nil || err.Error() != `task "task": boom` || time.Since(began) != time.Second {
					t.Error(err, time.Since(began))
				}
			})
		}
		wg.Wait()
	})
}

func TestCloseReportsLostPanics(t *testing.T) {
	boom := func(context.Context) (int, error) { panic(errBoom) }
	later := func(ctx context.Context) (int, error) {
		<-time.After(time.Second)
		panic(errBoom)
	}
	for _, c := range []struct {
		name string
		lost bool
		do   func(t *testing.T, s *lazy.Scope)
	}{
		{"Go without waiters", true, func(_ *testing.T, s *lazy.Scope) { lazy.Go(s, boom) }},
		{"Spawn", true, func(t *testing.T, s *lazy.Scope) {
			require.NoError(t, s.Spawn("task", func(context.Context) error { panic(errBoom) }))
		}},
		{"the only waiter left", true, func(t *testing.T, s *lazy.Scope) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			require.ErrorIs(t, lazy.In(s, later).Wait(ctx), context.DeadlineExceeded)
		}},
		{"Set overtook it", true, func(t *testing.T, s *lazy.Scope) {
			v := lazy.Go(s, later)
			go func() { _ = v.Wait(t.Context()) }()
			synctest.Wait()
			v.Set(1)
		}},
		{"Reset detached it", true, func(_ *testing.T, s *lazy.Scope) { lazy.Go(s, later).Reset() }},
		{"through another without waiters", true, func(_ *testing.T, s *lazy.Scope) {
			v := lazy.In(s, boom)
			lazy.Go(s, func(ctx context.Context) (int, error) { return v.Get(ctx) })
		}},
		{"a Get raised it", false, func(t *testing.T, s *lazy.Scope) {
			_, _, p := get(t.Context(), lazy.Go(s, later))
			require.NotNil(t, p)
		}},
		{"a Get raised it later", true, func(t *testing.T, s *lazy.Scope) {
			v := lazy.Go(s, boom)
			synctest.Wait()
			_, _, p := get(t.Context(), v)
			require.NotNil(t, p)
		}},
		{"an inline Get raised it", false, func(t *testing.T, s *lazy.Scope) {
			_, _, p := get(s.Context(), lazy.In(s, boom))
			require.NotNil(t, p)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := lazy.NewScope(apart(t))
				c.do(t, s)
				synctest.Wait()
				err := s.Close()
				if !c.lost {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, errBoom)
				joined := err.(interface{ Unwrap() []error }).Unwrap() // Close joins
				require.Len(t, joined, 1, "once")
			})
		})
	}
}

func TestCloseReturnsTheErrorsOfTasks(t *testing.T) {
	s := lazy.NewScope(apart(t))
	for name, fn := range map[string]func(context.Context) error{
		"fine":   func(context.Context) error { return nil },
		"failed": func(context.Context) error { return errBoom },
		"ended":  func(context.Context) error { runtime.Goexit(); return nil },
	} {
		require.NoError(t, s.Spawn(name, fn))
	}
	err := s.Close()
	require.ErrorContains(t, err, `task "failed": boom`)
	require.ErrorContains(t, err, `task "ended": lazy: the function called runtime.Goexit`)
	require.NotContains(t, err.Error(), "fine")
}

// TestCloseReturnsAtMost100Errors checks that the errors of a scope that lives for long do not fill the memory.
func TestCloseReturnsAtMost100Errors(t *testing.T) {
	s := lazy.NewScope(apart(t))
	for range 150 {
		require.NoError(t, s.Spawn("task", func(context.Context) error { return errBoom }))
	}
	require.Len(t, s.Close().(interface{ Unwrap() []error }).Unwrap(), 100)
}

// If the context of the only waiter ends at the moment of a panic, the waiter still raises the panic.
func TestPanicAtTheMomentOfLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScope(t)
		ended := make(chan bool)
		v := lazy.In(s, func(context.Context) (int, error) {
			<-ended
			panic(errBoom)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err, p := get(causeContext{ctx, func() {
			close(ended)
			synctest.Wait()
		}}, v)
		require.NoError(t, err)
		require.NotNil(t, p)
	})
}

// Close does not return a panic that waiters are about to raise, however late they wake.
func TestCloseLeavesPanicsToTheWaiters(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			s := lazy.NewScope(apart(t))
			v := lazy.In(s, func(ctx context.Context) (int, error) {
				<-ctx.Done()
				panic(errBoom)
			})
			panics := make(chan any, 3)
			for range cap(panics) {
				go func() {
					_, _, p := get(t.Context(), v)
					panics <- p
				}()
			}
			synctest.Wait()
			require.NoError(t, s.Close())
			for range cap(panics) {
				require.NotNil(t, <-panics)
			}
		})
	}
}

// causeContext calls fn when it has ended and is asked for the cause.
type causeContext struct {
	context.Context
	fn func()
}

func (c causeContext) Value(key any) any {
	if c.Err() != nil {
		c.fn()
	}
	return c.Context.Value(key)
}
