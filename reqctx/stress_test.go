package reqctx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// ring is a set of properties that need each other, sometimes in cycles, and fail in all possible ways. It counts the
// values that are not closed yet.
type ring struct {
	reg    *reqctx.Registry
	keys   []reqctx.Key[int]
	opened atomic.Int64
	closed atomic.Int64
}

func newRing() *ring {
	r := &ring{reg: quiet(), keys: make([]reqctx.Key[int], 20)}
	for i := range r.keys {
		p := reqctx.Prop[int]{
			Resolve: func(ctx context.Context) (int, error) { return r.resolve(ctx, i) },
			Commit:  func(ctx context.Context, _, _ int, _ http.Header) error { return r.commit(ctx, i) },
			Close: func(context.Context, int, error) error {
				r.closed.Add(1)
				return nil
			},
			Vary: []string{fmt.Sprint("H", i)},
		}
		if i == 19 {
			r.keys[i] = provideState(r.reg, fmt.Sprint("p", i), i)
			continue
		}
		if i%5 == 4 {
			p.Timeout = 20 * time.Microsecond
		}
		r.keys[i] = provide(r.reg, fmt.Sprint("p", i), p)
	}
	return r
}

func (r *ring) resolve(ctx context.Context, i int) (int, error) {
	r.opened.Add(1)
	switch rand.IntN(12) {
	case 0:
		return 0, errBoom
	case 1:
		panic(errBoom)
	case 2:
		return 0, context.Canceled
	case 3, 4:
		return r.keys[(i+1)%len(r.keys)].Get(ctx)
	case 5:
		return i, reqctx.Resolve(ctx, fmt.Sprint("p", rand.IntN(20)), fmt.Sprint("p", rand.IntN(20)))
	case 6:
		<-time.After(10 * time.Microsecond)
	}
	return i, nil
}

func (r *ring) commit(ctx context.Context, i int) error {
	if rand.IntN(4) == 0 {
		_, _ = r.keys[(i+7)%len(r.keys)].Get(ctx)
	}
	return nil
}

// act makes a random call that uses a random property.
func (r *ring) act(ctx context.Context, c *reqctx.Host) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err, _ = v.(error)
		}
	}()
	k := r.keys[rand.IntN(len(r.keys))]
	switch rand.IntN(12) {
	case 0:
		return k.Set(ctx, 100)
	case 1:
		return k.Invalidate(ctx)
	case 2:
		return reqctx.Resolve(ctx, k.Name(), "p3", "p19")
	case 3:
		return c.Go("task", func(ctx context.Context) error { _ = r.act(ctx, c); return nil })
	case 4:
		return k.Start(ctx)
	case 5:
		r.opened.Add(1)
		c.OnClose(func() error { r.closed.Add(1); return nil })
		return nil
	case 6:
		for range c.Props() {
			continue
		}
		_ = c.Idle()
		_, err, _ := k.Peek(ctx)
		return err
	case 7:
		ctx, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(30))*time.Microsecond)
		defer cancel()
		_, err := k.Get(ctx)
		return err
	default:
		_, err := k.Get(ctx)
		return err
	}
}

// In TestStress, many goroutines use all methods at the same time. Only expected errors occur, nothing hangs, and
// each opened value is closed exactly once.
func TestStress(t *testing.T) {
	r := newRing()
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	for range rounds {
		ctx, cancel := context.WithCancel(context.Background())
		c := reqctx.New(ctx, r.reg)
		derived, cancelDerived := context.WithCancel(c)
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				for range 30 {
					ctx := context.Context(c)
					if i%2 == 0 {
						ctx = derived
					}
					if err := r.act(ctx, c); !r.expected(err) {
						t.Errorf("unexpected: %v", err)
					}
				}
			})
		}
		wg.Go(func() {
			h := http.Header{}
			if err := commit(c, h); !r.expected(err) {
				t.Errorf("unexpected: %v", err)
			}
			for range h["Vary"] {
				continue // Commit may no longer change the header
			}
			if rand.IntN(3) == 0 {
				cancel()
			}
			_ = c.Finish()
		})
		wg.Wait()
		_ = c.Finish()
		_, err := r.keys[0].Get(c)
		require.ErrorIs(t, err, reqctx.ErrFinished)
		cancelDerived()
		cancel()
	}
	require.Equal(t, r.opened.Load(), r.closed.Load())
	require.NotZero(t, r.opened.Load())
}

// commit calls Commit. If a Commit function reads a property that has panicked, commit returns the panic as an error.
func commit(c *reqctx.Host, h http.Header) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err, _ = v.(error)
		}
	}()
	return c.Commit(http.StatusOK, h)
}

func (r *ring) expected(err error) bool {
	var cycle *lazy.CycleError
	return err == nil || errors.As(err, &cycle) || errors.Is(err, errBoom) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, reqctx.ErrFinished) || errors.Is(err, reqctx.ErrCommitted) ||
		errors.Is(err, lazy.ErrClosed)
}
