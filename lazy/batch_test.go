package lazy_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/lazy"
)

// tally is a batch function that remembers its calls.
type tally struct {
	mu    sync.Mutex
	calls [][]int
	takes time.Duration
}

func (c *tally) squares(ctx context.Context, keys []int) (map[int]int, error) {
	c.mu.Lock()
	c.calls = append(c.calls, slices.Clone(keys))
	c.mu.Unlock()
	if err := pause(ctx, c.takes); err != nil {
		return nil, err
	}
	found := map[int]int{}
	for _, k := range keys {
		if k >= 0 {
			found[k] = k * k
		}
	}
	return found, nil
}

func (c *tally) seen() [][]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// gathering returns a stand-alone batch of fn for a synctest bubble. A call has the keys of all goroutines that ask
// before the goroutines block.
func gathering(fn lazy.BatchFunc[int, int]) *lazy.Batch[int, int] { return gatheringIn(nil, fn) }

// gatheringIn is like gathering, but returns a batch of the scope s.
func gatheringIn(s *lazy.Scope, fn lazy.BatchFunc[int, int]) *lazy.Batch[int, int] {
	b := lazy.BatchIn(s, "", fn)
	b.SetYield(synctest.Wait)
	return b
}

// bothKinds runs test in two bubbles: with a nil scope, which means stand-alone batches, and with a scope.
func bothKinds(t *testing.T, test func(t *testing.T, ctx context.Context, s *lazy.Scope)) {
	t.Run("stand-alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, t.Context(), nil) })
	})
	t.Run("of a scope", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := lazy.NewScope(apart(t))
			test(t, s.Context(), s)
			require.NoError(t, s.Close())
		})
	})
}

// asking returns a value of the scope that gets key from b.
func asking(s *lazy.Scope, b *lazy.Batch[int, int], key int) *lazy.Value[int] {
	return lazy.In(s, func(ctx context.Context) (int, error) { return b.Get(ctx, key) })
}

// Goroutines that are started together usually share a call, although nothing makes them wait for each other.
func TestBatchOfGoroutinesIsFewCalls(t *testing.T) {
	const rounds, n = 100, 50
	for name, round := range map[string]func(s *lazy.Scope, b *lazy.Batch[int, int]) error{
		"goroutines": func(s *lazy.Scope, b *lazy.Batch[int, int]) error {
			errs := make([]error, n)
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() { _, errs[i] = b.Get(s.Context(), i) })
			}
			wg.Wait()
			return errors.Join(errs...)
		},
		"All": func(s *lazy.Scope, b *lazy.Batch[int, int]) error {
			ws := make([]lazy.Waiter, n)
			for i := range ws {
				ws[i] = asking(s, b, i)
			}
			return lazy.All(s.Context(), ws...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			best := n
			for began := time.Now(); best > 3 && time.Since(began) < 20*time.Second; {
				var calls []int
				for range rounds {
					var c tally
					s := lazy.NewScope(t.Context())
					require.NoError(t, round(s, lazy.BatchIn(s, "", c.squares)))
					require.NoError(t, s.Close())
					calls = append(calls, len(c.seen()))
				}
				slices.Sort(calls)
				best = min(best, calls[rounds/2])
			}
			t.Logf("calls in the median: %d", best)
			if !testenv.Racing { // the race detector delays goroutines unequally
				require.LessOrEqual(t, best, 3)
			}
			require.LessOrEqual(t, best, n/5)
		})
	}
}

// A task that asks later than others gets a call of its own, even if it was started with them.
func TestBatchDoesNotWaitForALateTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		s := newScopeOf(t, t.Context())
		b := lazy.BatchIn(s, "", c.squares)
		late := lazy.In(s, func(ctx context.Context) (int, error) {
			if err := pause(ctx, time.Second); err != nil { // as if it used the network
				return 0, err
			}
			return b.Get(ctx, 2)
		})
		soon := asking(s, b, 1)
		began := time.Now()
		go func() { _ = late.Wait(t.Context()) }()
		synctest.Wait()
		require.NoError(t, soon.Wait(t.Context()))
		require.Zero(t, time.Since(began))
		require.NoError(t, lazy.All(t.Context(), soon, late))
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, [][]int{{1}, {2}}, c.seen())
	})
}

func TestBatchOutsideOfAScope(t *testing.T) {
	var c tally
	b := lazy.NewBatch(c.squares)
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		requireLoad(t, ctx, b, 7, 49)
	}
	require.Equal(t, [][]int{{7}, {7}}, c.seen(), "a batch keeps nothing")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	_, err := b.Get(ctx, 7)
	require.Equal(t, errBoom, err)
}

// A caller that cannot leave before the call ends runs the batch's function on its own goroutine.
func TestBatchRunsOnTheCallersGoroutine(t *testing.T) {
	fn := func(_ context.Context, keys []int) (map[int]int, error) {
		return map[int]int{keys[0]: goroutine()}, nil
	}
	s := newScope(t)
	for i, c := range []struct {
		batch *lazy.Batch[int, int]
		ctx   context.Context
		own   bool
	}{
		{lazy.NewBatch(fn), context.Background(), true},
		{lazy.NewBatch(fn), t.Context(), false},
		{lazy.BatchIn(s, "", fn), s.Context(), true},
		{lazy.BatchIn(s, "", fn), context.Background(), true},
		{lazy.BatchIn(s, "", fn), t.Context(), false},
	} {
		got, err := c.batch.Get(c.ctx, 1)
		require.NoError(t, err)
		require.Equal(t, c.own, got == goroutine(), i)
	}
}
