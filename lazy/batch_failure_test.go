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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

func TestBatchMissingKeyAndErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		b := gathering(c.squares)
		s := lazy.NewScope(t.Context())
		good, bad := asking(s, b, 2), asking(s, b, -2)
		require.ErrorIs(t, lazy.All(t.Context(), good, bad), lazy.ErrMissing)
		got, err := good.Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, 4, got)
		_, err = bad.Get(t.Context())
		require.EqualError(t, err, "lazy: no value for the key: -2")
		require.Len(t, c.seen(), 1)

		var calls atomic.Int32
		failing := gathering(func(context.Context, []int) (map[int]int, error) { calls.Add(1); return nil, errBoom })
		for _, ctx := range []context.Context{t.Context(), s.Context(), context.Background()} {
			calls.Store(0)
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() {
					if _, err := failing.Get(ctx, i); !errors.Is(err, errBoom) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 1, calls.Load(), "an error is that of all, not a reason to try again")
		}
		require.NoError(t, s.Close())
	})
}

func (c *tally) panics(context.Context, []int) (map[int]int, error) { panic("no") }

func TestBatchPanicReachesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := gathering(new(tally).panics)
		s := lazy.NewScope(t.Context())
		for _, ctx := range []context.Context{t.Context(), s.Context(), context.Background()} {
			panics := make([]any, 3)
			var wg sync.WaitGroup
			for i := range panics {
				wg.Go(func() { panics[i] = catch(func() { _, _ = b.Get(ctx, i) }) })
			}
			wg.Wait()
			var p *lazy.PanicError
			require.ErrorAs(t, panics[0].(error), &p)
			require.Equal(t, "no", p.Value)
			require.Contains(t, p.Name, "panics")
			require.Contains(t, string(p.Stack), "(*tally).panics")
			for _, other := range panics {
				require.Same(t, p, other)
			}
		}
		require.NoError(t, s.Close(), "every Get raised the panic")
	})
}

// A panic that no Get is left for is an error of the scope's Close.
func TestBatchPanicAfterAllHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := lazy.NewBatch(func(context.Context, []int) (map[int]int, error) {
			<-time.After(time.Minute)
			panic(errBoom)
		})
		s := lazy.NewScope(t.Context())
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		_, err := b.Get(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		<-time.After(time.Hour)
		require.ErrorIs(t, s.Close(), errBoom)
	})
}

func TestBatchGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := gathering(func(context.Context, []int) (map[int]int, error) { runtime.Goexit(); return nil, nil })
		s := lazy.NewScope(t.Context())
		for _, ctx := range []context.Context{t.Context(), s.Context()} {
			var ended, failed atomic.Int32
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() {
					returned := false
					defer func() {
						if !returned {
							ended.Add(1)
						}
					}()
					if _, err := b.Get(ctx, i); errors.Is(err, lazy.ErrGoexit) {
						failed.Add(1)
					}
					returned = true
				})
			}
			wg.Wait()
			require.EqualValues(t, 3, ended.Load()+failed.Load())
			require.LessOrEqual(t, ended.Load(), int32(1), "the goroutine that it ran on")
		}
		require.NoError(t, s.Close())
	})
}

// A value whose batch needs the value is a cycle, also if another value's key is what
// the batch needs it for.
func TestBatchInACycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		var user *lazy.Value[int]
		b := gathering(func(ctx context.Context, keys []int) (map[int]int, error) {
			_, err := user.Get(ctx)
			return nil, err
		})
		user = asking(s, b, 1)
		other := asking(s, b, 2)
		other.Start(t.Context())
		_, err := user.Get(t.Context())
		var cycle *lazy.CycleError
		require.ErrorAs(t, err, &cycle)
		require.Len(t, cycle.Path, 3)
		require.ErrorAs(t, other.Wait(t.Context()), &cycle)
		require.NoError(t, s.Close())
	})
}

// Each caller leaves with the cause of its own context. A stand-alone call is
// cancelled when the last one has left.
func TestBatchIsCancelledWhenAllHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		var took time.Duration
		b := gathering(func(ctx context.Context, keys []int) (map[int]int, error) {
			began := time.Now()
			<-ctx.Done()
			took, cause = time.Since(began), context.Cause(ctx)
			return nil, cause
		})
		var wg sync.WaitGroup
		for i := range 3 {
			ctx, leave := context.WithCancelCause(t.Context())
			left := fmt.Errorf("%d left", i)
			time.AfterFunc(time.Duration(i+1)*time.Second, func() { leave(left) })
			wg.Go(func() {
				if _, err := b.Get(ctx, i); err != left {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		require.EqualError(t, cause, "lazy: every waiter left")
		require.Equal(t, 3*time.Second, took)
	})
}

// The call is made, with all its keys, also if the caller that began it leaves before.
func TestBatchContinuesWithoutItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		b := lazy.NewBatch(c.squares)
		s := lazy.NewScope(t.Context())
		for _, ctx := range []context.Context{t.Context(), s.Context()} {
			c.calls, c.takes = nil, time.Minute
			hold := make(chan struct{})
			b.SetYield(func() { <-hold })
			leaves, leave := context.WithCancelCause(ctx)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := b.Get(leaves, 1); err != errBoom {
					t.Error(err)
				}
			})
			synctest.Wait()
			wg.Go(func() {
				if got, err := b.Get(ctx, 2); got != 4 || err != nil {
					t.Error(got, err)
				}
			})
			synctest.Wait()
			leave(errBoom)
			close(hold)
			wg.Wait()
			require.Equal(t, [][]int{{1, 2}}, c.seen())
		}
		require.NoError(t, s.Close())
	})
}

func TestBatchOfAClosedScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := lazy.NewBatch(new(tally).squares)
		s := lazy.NewScope(t.Context())
		hold := make(chan struct{})
		b.SetYield(func() { <-hold })
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				if _, err := b.Get(context.WithoutCancel(s.Context()), i); !errors.Is(err, lazy.ErrClosed) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		require.NoError(t, s.Close())
		close(hold)
		wg.Wait()
		for _, ctx := range []context.Context{s.Context(), context.WithoutCancel(s.Context())} {
			_, err := b.Get(ctx, 4)
			require.ErrorIs(t, err, lazy.ErrClosed)
		}
	})
}

// A key that cannot be a map's panics for its own caller, and the others have their
// values.
func TestBatchKeyWithoutHash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := lazy.NewBatch(func(_ context.Context, keys []any) (map[any]any, error) {
			found := map[any]any{}
			for _, k := range keys {
				found[k] = k
			}
			return found, nil
		})
		b.SetYield(synctest.Wait)
		var wg sync.WaitGroup
		for _, key := range []any{1, []int{1}, struct{ x any }{[]int{1}}, "k"} {
			wg.Go(func() {
				var got any
				var err error
				panicked := catch(func() { got, err = b.Get(t.Context(), key) })
				if key == 1 || key == "k" {
					assert.Nil(t, panicked)
					assert.NoError(t, err)
					assert.Equal(t, key, got)
					return
				}
				err, _ = panicked.(error)
				assert.ErrorContains(t, err, "unhashable type")
				assert.NotErrorAs(t, err, new(*lazy.PanicError))
			})
		}
		wg.Wait()
	})
}
