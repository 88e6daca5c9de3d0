package lazy_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

// stress calls do many times on each of many goroutines. In a bubble, the test fails if all goroutines are blocked.
func stress(goroutines, times int, do func(rnd *rand.Rand)) {
	var wg sync.WaitGroup
	for i := range uint64(goroutines) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(i, rand.Uint64()))
			for range times {
				do(rnd)
			}
		})
	}
	wg.Wait()
}

// bubbles runs fn in n bubbles. Each is small: the race detector gives up on bubbles with thousands of timers
// (golang/go issue 78156).
func bubbles(t *testing.T, n int, fn func(t *testing.T)) {
	for range n {
		synctest.Test(t, fn)
	}
}

// briefly returns a context that ends within 3 µs, or never.
func briefly(rnd *rand.Rand) (context.Context, context.CancelFunc) {
	switch d := rnd.IntN(6); d {
	case 0:
		return context.Background(), func() {}
	case 1:
		return context.WithCancel(context.Background())
	default:
		return context.WithTimeoutCause(context.Background(), time.Duration(d-2)*time.Microsecond, errGone)
	}
}

var errGone = errors.New("gone")

// Goroutines call all methods of a stand-alone value at the same time. A waiter that stays gets a value, and never the
// cancellation of a computation that other waiters have abandoned.
func TestStressStandAlone(t *testing.T) {
	var abandoned, left atomic.Int32
	bubbles(t, 30, func(t *testing.T) {
		var running atomic.Int32
		v := lazy.New(func(ctx context.Context) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			if err := pause(ctx, time.Duration(rand.IntN(4))*time.Microsecond); err != nil {
				abandoned.Add(1)
				return 0, err
			}
			return 1, nil
		})
		stress(30, 10, func(rnd *rand.Rand) {
			ctx, cancel := briefly(rnd)
			defer cancel()
			switch rnd.IntN(8) {
			case 0:
				v.Set(2)
			case 1, 2, 3:
				v.Reset()
			case 4:
				if got, err, ok := v.Peek(); ok && (err != nil || got == 0) {
					t.Error(got, err)
				}
			case 5:
				if ctx.Done() == nil {
					ctx = t.Context()
				}
				go func() { _ = v.Wait(ctx) }()
				_ = pause(t.Context(), time.Microsecond)
			default:
				got, err := v.Get(ctx)
				switch {
				case err == nil && got != 0:
				case err == errGone && ctx.Err() != nil: // the cause itself
					left.Add(1)
				default:
					t.Error(got, err, ctx.Err())
				}
			}
		})
		<-time.After(time.Second)
		synctest.Wait()
		require.Zero(t, running.Load())
	})
	require.Positive(t, abandoned.Load())
	require.Positive(t, left.Load())
}

// Goroutines call all methods of a scope's values, and the scope is closed meanwhile.
func TestStressScope(t *testing.T) {
	bubbles(t, 50, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		var running, closed atomic.Int32
		var closing atomic.Bool
		fn := func(ctx context.Context) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			err := pause(ctx, time.Duration(rand.IntN(4))*time.Microsecond)
			if err == nil && rand.IntN(8) == 0 {
				panic(errBoom)
			}
			return 1, err
		}
		vs := []*lazy.Value[int]{lazy.In(s, fn), lazy.In(s, fn), lazy.Go(s, fn)}
		time.AfterFunc(time.Duration(1+rand.IntN(50))*time.Microsecond, func() {
			closing.Store(true)
			_ = s.Close() // returns the panics that no Get has raised
			if n := running.Load(); n != 0 {
				t.Errorf("%d run on after Close", n)
			}
			closed.Add(1)
		})
		stress(20, 20, func(rnd *rand.Rand) {
			ctx, cancel := briefly(rnd)
			defer cancel()
			if rnd.IntN(2) == 0 {
				ctx = s.Context()
			}
			v := vs[rnd.IntN(len(vs))]
			switch rnd.IntN(8) {
			case 0:
				v.Set(2)
			case 1, 2:
				v.Reset()
			case 3:
				_, _, _ = v.Peek()
			case 4:
				go func() { _ = catch(func() { _ = v.Wait(ctx) }) }()
			case 5:
				_ = s.Spawn("task", func(context.Context) error { _ = v.Wait(ctx); return nil })
			default:
				got, err, p := get(ctx, v)
				switch {
				case p != nil:
					if e, ok := p.(error); !ok || !errors.Is(e, errBoom) {
						t.Error(p)
					}
				case err == nil && got != 0:
				case err == errGone && ctx.Err() != nil: // the cause itself
				case errors.Is(err, lazy.ErrClosed) && closing.Load():
				default:
					t.Error(got, err, ctx.Err())
				}
			}
		})
		<-time.After(time.Second)
		require.EqualValues(t, 1, closed.Load())
		require.Zero(t, running.Load())
	})
}
