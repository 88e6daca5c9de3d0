package lazy_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

func TestBatchMissingKey(t *testing.T) {
	bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
		var c tally // returns no values for negative keys
		b := gatheringIn(s, c.squares)
		_, err := b.Get(ctx, -2)
		require.ErrorIs(t, err, lazy.ErrMissing)
		require.EqualError(t, err, "lazy: no value for the key: -2")
		_, err = b.GetAll(ctx, []int{1, -3, 2, -4})
		require.EqualError(t, err, "lazy: no value for the key: -3", "the first one")
		got, err := b.GetAll(ctx, []int{1, 2})
		require.NoError(t, err)
		require.Equal(t, []int{1, 4}, got)

		b = gatheringIn(s, lazy.OrElse(c.squares, 7))
		got, err = b.GetAll(ctx, []int{-1, 3, -2})
		require.NoError(t, err)
		require.Equal(t, []int{7, 9, 7}, got)

		calls := 0
		b = lazy.BatchIn(s, "", func(context.Context, []int) (map[int]int, error) { calls++; return map[int]int{1: 10, 2: 20}, nil })
		for i := range 2 {
			requireLoad(t, ctx, b, i+1, 10*(i+1))
		}
		require.Equal(t, 2, calls, "a value that no caller has asked for is not kept")
	})
}

func TestBatchError(t *testing.T) {
	bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
		var calls atomic.Int32
		fail := func(context.Context, []int) (map[int]int, error) { calls.Add(1); return nil, errBoom }
		for _, fn := range []lazy.BatchFunc[int, int]{fail, lazy.OrElse(fail, 1)} {
			calls.Store(0)
			b := gatheringIn(s, fn)
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() {
					if _, err := b.GetAll(ctx, []int{i, 10, 20 + i}); !errors.Is(err, errBoom) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 1, calls.Load(), "an error is that of all, not a reason to try again")
			_, err := b.Get(ctx, 1)
			require.Equal(t, errBoom, err)
			want := int32(2)
			if s != nil {
				want = 1
			}
			require.Equal(t, want, calls.Load(), "only a scope keeps an error")
		}
	})
}

func (c *tally) panics(context.Context, []int) (map[int]int, error) { panic("no") }

func TestBatchPanicReachesAll(t *testing.T) {
	bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
		b := gatheringIn(s, new(tally).panics)
		panics := make([]any, 3)
		var wg sync.WaitGroup
		for i := range panics {
			wg.Go(func() { panics[i] = catch(func() { _, _ = b.GetAll(ctx, []int{i, 10}) }) })
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
	})
}

// If one call of a caller panics, the caller still waits for its other calls, or leaves them.
func TestGetAllLeavesAllItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		b := lazy.NewBatch(func(ctx context.Context, keys []int) (map[int]int, error) {
			if keys[0] == 1 {
				<-time.After(time.Second)
				panic(errBoom)
			}
			cause = pause(ctx, time.Hour)
			return nil, cause
		})
		go catch(func() { _, _ = b.Get(t.Context(), 1) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var p *lazy.PanicError
		require.ErrorAs(t, catch(func() { _, _ = b.GetAll(ctx, []int{1, 2}) }).(error), &p)
		require.ErrorIs(t, p, errBoom)
		synctest.Wait()
		require.EqualError(t, cause, "lazy: every waiter left")
	})
}

// A call loads all its keys even if the caller that began it leaves first.
func TestBatchContinuesWithoutItsFirstCaller(t *testing.T) {
	bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
		c := tally{takes: time.Minute}
		b := gatheringIn(s, c.squares)
		hold := make(chan struct{})
		b.SetYield(func() { <-hold })
		leaves, leave := context.WithCancelCause(ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := b.GetAll(leaves, []int{1, 3}); err != errBoom {
				t.Error(err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got, err := b.GetAll(ctx, []int{3, 2}); !slices.Equal(got, []int{9, 4}) || err != nil {
				t.Error(got, err)
			}
		})
		synctest.Wait()
		leave(errBoom)
		close(hold)
		wg.Wait()
		require.Equal(t, [][]int{{1, 3, 2}}, c.seen())
	})
}

// A batch forgets a cancellation if its scope was not cancelled.
func TestBatchForgetsItsOwnCancellation(t *testing.T) {
	bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
		var calls [][]int
		b := gatheringIn(s, func(_ context.Context, keys []int) (map[int]int, error) {
			if calls = append(calls, keys); len(calls) == 1 {
				return nil, context.DeadlineExceeded
			}
			return map[int]int{1: 1, 2: 2, 3: 3}, nil
		})
		_, err := b.GetAll(ctx, []int{1, 2})
		require.Equal(t, context.DeadlineExceeded, err)
		got, err := b.GetAll(ctx, []int{3, 2, 1})
		require.NoError(t, err)
		require.Equal(t, []int{3, 2, 1}, got)
		require.Equal(t, [][]int{{1, 2}, {3, 2, 1}}, calls, "what is tried again is in the same call as the rest")
	})
}

// A call that all callers have left, but that goes on, does not block the next call.
func TestBatchAfterAnAbandonedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		b := gathering(func(context.Context, []int) (map[int]int, error) {
			n := calls.Add(1)
			<-time.After(time.Minute)
			return map[int]int{1: int(n)}, nil
		})
		leaves, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, err := b.Get(leaves, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var wg sync.WaitGroup
		for range 2 { // the second time, the abandoned call has returned
			wg.Go(func() {
				got, err := b.Get(t.Context(), 1)
				assert.NoError(t, err)
				assert.Equal(t, 2, got)
			})
			<-time.After(59*time.Second + time.Millisecond)
		}
		wg.Wait()
		require.EqualValues(t, 2, calls.Load())
	})
}

// GetAll panics for a caller whose key cannot be hashed. Other callers get their values.
func TestBatchKeyWithoutHash(t *testing.T) {
	bothKinds(t, func(t *testing.T, ctx context.Context, s *lazy.Scope) {
		b := lazy.BatchIn(s, "", func(_ context.Context, keys []any) (map[any]any, error) {
			return map[any]any{"first": 1}, nil
		})
		b.SetYield(synctest.Wait)
		var wg sync.WaitGroup
		wg.Go(func() {
			got, err := b.Get(ctx, "first")
			assert.NoError(t, err)
			assert.Equal(t, 1, got)
		})
		for _, get := range []func() (any, error){
			func() (any, error) { return b.Get(ctx, []int{1}) },
			func() (any, error) { return b.GetAll(ctx, []any{"first", struct{ x any }{[]int{1}}}) },
		} {
			wg.Go(func() {
				err, _ := catch(func() { _, _ = get() }).(error)
				assert.ErrorContains(t, err, "unhashable type")
				assert.NotErrorAs(t, err, new(*lazy.PanicError))
			})
		}
		wg.Wait()
	})
}
