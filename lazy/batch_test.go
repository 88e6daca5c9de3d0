package lazy_test

import (
	"context"
	"errors"
	"fmt"
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

// gathering returns a stand-alone batch of fn, for a bubble: its calls have the keys of
// all goroutines that ask before they block.
func gathering(fn lazy.BatchFunc[int, int]) *lazy.Batch[int, int] { return gatheringIn(nil, fn) }

// gatheringIn returns such a batch of the scope s.
func gatheringIn(s *lazy.Scope, fn lazy.BatchFunc[int, int]) *lazy.Batch[int, int] {
	b := lazy.BatchIn(s, "", fn)
	b.SetYield(synctest.Wait)
	return b
}

// bothKinds runs test in a bubble with a stand-alone batch, which s is nil for, and with
// one of a scope.
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

func TestBatchHasEachKeyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		s := lazy.NewScope(t.Context())
		b := gatheringIn(s, c.squares)
		var values []*lazy.Value[int]
		var ws []lazy.Waiter
		for i := range 20 {
			values = append(values, asking(s, b, i%10))
			ws = append(ws, values[i])
		}
		require.NoError(t, lazy.All(t.Context(), ws...))
		for i, v := range values {
			got, err := v.Get(t.Context())
			require.NoError(t, err)
			require.Equal(t, i%10*(i%10), got)
		}
		calls := c.seen()
		require.Len(t, calls, 1)
		slices.Sort(calls[0])
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, calls[0])
		require.NoError(t, s.Close())
	})
}

// Goroutines that are started together usually share a call, without anything that
// makes them wait for one another.
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
			if !testenv.Racing { // which delays goroutines apart
				require.LessOrEqual(t, best, 3)
			}
			require.LessOrEqual(t, best, n/5)
		})
	}
}

// A task of the scope that blocks elsewhere, for as long as the scope is there, does
// not delay a call: neither a task's nor the owner's.
func TestBatchDoesNotWaitForOtherTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		s := lazy.NewScope(t.Context())
		b := lazy.BatchIn(s, "", c.squares)
		require.NoError(t, s.Spawn("heartbeat", func(ctx context.Context) error { <-ctx.Done(); return nil }))
		synctest.Wait()
		got, err := asking(s, b, 2).Get(s.Context())
		require.NoError(t, err)
		require.Equal(t, 4, got)
		got, err = b.Get(s.Context(), 3)
		require.NoError(t, err)
		require.Equal(t, 9, got)
		require.NoError(t, s.Close())
	})
}

// What asks later is in the next call, even if it was started in time.
func TestBatchDoesNotWaitForALateTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		s := lazy.NewScope(t.Context())
		b := lazy.BatchIn(s, "", c.squares)
		late := lazy.In(s, func(ctx context.Context) (int, error) {
			if err := pause(ctx, time.Second); err != nil { // the network, say
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
		require.NoError(t, s.Close())
	})
}

func TestBatchesRunConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tally{takes: time.Hour}
		s := lazy.NewScope(t.Context())
		b := lazy.BatchIn(s, "", c.squares)
		long := asking(s, b, 1)
		go func() { _ = long.Wait(t.Context()) }()
		synctest.Wait()
		c.takes = time.Second
		began := time.Now()
		require.NoError(t, asking(s, b, 2).Wait(t.Context()))
		require.Equal(t, time.Second, time.Since(began))
		require.NoError(t, long.Wait(t.Context()))
		require.NoError(t, s.Close())
	})
}

func TestBatchOutsideOfAScope(t *testing.T) {
	var c tally
	b := lazy.NewBatch(c.squares)
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		got, err := b.Get(ctx, 7)
		require.NoError(t, err)
		require.Equal(t, 49, got)
	}
	require.Equal(t, [][]int{{7}, {7}}, c.seen(), "a batch keeps nothing")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	_, err := b.Get(ctx, 7)
	require.Equal(t, errBoom, err)
}

// A caller that cannot leave before the call ends makes it on its own goroutine.
func TestBatchRunsOnTheCallersGoroutine(t *testing.T) {
	fn := func(_ context.Context, keys []int) (map[int]int, error) {
		return map[int]int{keys[0]: goroutine()}, nil
	}
	s := lazy.NewScope(apart(t))
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
	require.NoError(t, s.Close())
}

// TestBatchStress has many scopes with tasks that ask, wait for one another and
// leave: none hangs, and each key is in exactly one call.
func TestBatchStress(t *testing.T) {
	var served sync.Map
	load := func(_ context.Context, keys []string) (map[string]string, error) {
		found := map[string]string{}
		for _, k := range keys {
			if _, twice := served.LoadOrStore(k, true); twice {
				return nil, fmt.Errorf("%s was served twice", k)
			}
			found[k] = k
		}
		return found, nil
	}
	alone := lazy.NewBatch(load)
	var wg sync.WaitGroup
	for scope := range 30 {
		wg.Go(func() {
			s := lazy.NewScope(t.Context())
			b := alone
			if scope%2 == 0 {
				b = lazy.BatchIn(s, "", load)
			}
			var ws []lazy.Waiter
			for task := range 8 {
				ws = append(ws, lazy.In(s, func(ctx context.Context) (int, error) {
					for step := range 5 {
						if task > 0 && step == task%3 {
							if err := ws[task-1].Wait(ctx); err != nil {
								return 0, err
							}
						}
						ctx, cancel := context.WithCancel(ctx)
						if (task+step)%4 == 0 {
							go cancel()
						}
						key := fmt.Sprint(scope, "/", task, "/", step)
						got, err := b.Get(ctx, key)
						cancel()
						if got != key && !errors.Is(err, context.Canceled) {
							return 0, fmt.Errorf("%s: %q, %w", key, got, err)
						}
					}
					return 0, nil
				}))
			}
			if err := lazy.All(t.Context(), ws...); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
