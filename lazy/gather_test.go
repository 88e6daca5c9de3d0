package lazy_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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

func TestBatchOfTasksIsOneCall(t *testing.T) {
	for range 50 {
		var c tally
		b := lazy.NewBatch(c.squares)
		s := lazy.NewScope(t.Context())
		var tasks []lazy.Waiter
		var values []*lazy.Value[int]
		for i := range 20 {
			v := lazy.In(s, func(ctx context.Context) (int, error) { return b.Get(ctx, i%10) })
			tasks, values = append(tasks, v), append(values, v)
		}
		require.NoError(t, lazy.All(t.Context(), tasks...))
		for i, v := range values {
			got, err := v.Get(t.Context())
			require.NoError(t, err)
			require.Equal(t, i%10*(i%10), got)
		}
		calls := c.seen()
		require.Len(t, calls, 1)
		slices.Sort(calls[0])
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, calls[0], "each key once")
		require.NoError(t, s.Close())
	}
}

// Tasks that were started one by one share a call once their owner waits, or has had
// its time to start more.
func TestBatchOfStartedTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tally{takes: time.Second}
		b := lazy.NewBatch(c.squares)
		s := lazy.NewScope(t.Context())
		release := s.Hold()
		for i := range 10 {
			lazy.Go(s, func(ctx context.Context) (int, error) { return b.Get(ctx, i) })
		}
		synctest.Wait()
		require.Empty(t, c.seen(), "held")
		release()
		synctest.Wait()
		require.Len(t, c.seen(), 1)
		require.Len(t, c.seen()[0], 10)
		<-time.After(2 * time.Second)
		require.NoError(t, s.Close())
	})
}

func TestBatchWaitsForTheTaskThatMayStillAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		b := lazy.NewBatch(c.squares)
		s := lazy.NewScope(t.Context())
		first := lazy.In(s, func(ctx context.Context) (int, error) { return b.Get(ctx, 1) })
		late := lazy.In(s, func(ctx context.Context) (int, error) {
			if err := pause(ctx, time.Second); err != nil { // the network, say
				return 0, err
			}
			return b.Get(ctx, 2)
		})
		began := time.Now()
		require.NoError(t, lazy.All(t.Context(), first, late))
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, [][]int{{1, 2}}, c.seen())
		require.NoError(t, s.Close())
	})
}

// A call under way is not a task: those who ask meanwhile do not wait for its end.
func TestBatchesGoBesideOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, fast := tally{takes: time.Hour}, tally{takes: time.Second}
		one, two := lazy.NewBatch(slow.squares), lazy.NewBatch(fast.squares)
		s := lazy.NewScope(t.Context())
		long := lazy.Go(s, func(ctx context.Context) (int, error) { return one.Get(ctx, 1) })
		short := lazy.Go(s, func(ctx context.Context) (int, error) {
			if err := pause(ctx, time.Minute); err != nil {
				return 0, err
			}
			v, err := two.Get(ctx, 1)
			if err != nil {
				return 0, err
			}
			return two.Get(ctx, v+1)
		})
		began := time.Now()
		_, err := short.Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Minute+2*time.Second, time.Since(began))
		require.NoError(t, long.Wait(t.Context()))
		require.NoError(t, s.Close())
	})
}

// Three levels, each of which asks for what the one before has found.
func TestBatchLevelByLevel(t *testing.T) {
	var c tally
	b := lazy.NewBatch(c.squares)
	s := lazy.NewScope(t.Context())
	defer s.Close()
	var tasks []lazy.Waiter
	for i := range 5 {
		tasks = append(tasks, lazy.In(s, func(ctx context.Context) (int, error) {
			x, err := b.Get(ctx, i+2)
			for range 2 {
				if err != nil {
					return 0, err
				}
				x, err = b.Get(ctx, x)
			}
			return x, err
		}))
	}
	require.NoError(t, lazy.All(t.Context(), tasks...))
	require.Len(t, c.seen(), 3)
	for _, keys := range c.seen() {
		require.Len(t, keys, 5)
	}
}

func TestBatchInsideOfABatch(t *testing.T) {
	var c tally
	inner := lazy.NewBatch(c.squares)
	outer := lazy.NewBatch(func(ctx context.Context, keys []int) (map[int]int, error) {
		found := map[int]int{}
		for _, k := range keys {
			v, err := inner.Get(ctx, k)
			if err != nil {
				return nil, err
			}
			found[k] = v + 1
		}
		return found, nil
	})
	s := lazy.NewScope(t.Context())
	defer s.Close()
	v := lazy.Go(s, func(ctx context.Context) (int, error) { return outer.Get(ctx, 3) })
	got, err := v.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, 10, got)
}

func TestBatchInsideOfSpawnedTasks(t *testing.T) {
	var c tally
	b := lazy.NewBatch(c.squares)
	s := lazy.NewScope(t.Context())
	release := s.Hold()
	var sum atomic.Int64
	for i := range 4 {
		require.NoError(t, s.Spawn("task", func(ctx context.Context) {
			v, err := b.Get(ctx, i)
			if err == nil {
				sum.Add(int64(v))
			}
		}))
	}
	release()
	require.Eventually(t, func() bool { return sum.Load() == 14 }, 20*time.Second, time.Millisecond)
	require.Len(t, c.seen(), 1)
	require.NoError(t, s.Close())
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
}

func TestBatchOutsideOfAScopeTakesWhoIsReady(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that one yield is enough for all of them
	var c tally
	b := lazy.NewBatch(c.squares)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if got, err := b.Get(t.Context(), i); err != nil || got != i*i {
				t.Errorf("key %d: %d, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	require.Less(t, len(c.seen()), 10)
}

func TestBatchKeepsScopesApart(t *testing.T) {
	var c tally
	b := lazy.NewBatch(c.squares)
	for i := range 3 {
		s := lazy.NewScope(t.Context())
		_, err := lazy.Go(s, func(ctx context.Context) (int, error) { return b.Get(ctx, i) }).Get(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	require.Equal(t, [][]int{{0}, {1}, {2}}, c.seen())
}

func TestBatchMissingKeyAndErrors(t *testing.T) {
	var c tally
	b := lazy.NewBatch(c.squares)
	s := lazy.NewScope(t.Context())
	defer s.Close()
	good := lazy.In(s, func(ctx context.Context) (int, error) { return b.Get(ctx, 2) })
	bad := lazy.In(s, func(ctx context.Context) (int, error) { return b.Get(ctx, -2) })
	require.ErrorIs(t, lazy.All(t.Context(), good, bad), lazy.ErrMissing)
	got, err := good.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, got)
	_, err = bad.Get(t.Context())
	require.ErrorContains(t, err, "-2")

	down := errors.New("down")
	failing := lazy.NewBatch(func(context.Context, []int) (map[int]int, error) { return nil, down })
	_, err = failing.Get(t.Context(), 1)
	require.ErrorIs(t, err, down)
}

func TestGatherPanicReachesAll(t *testing.T) {
	g := lazy.NewGather(func(context.Context, []int) error { panic("no") })
	s := lazy.NewScope(t.Context())
	var ws []lazy.Waiter
	var vs []*lazy.Value[int]
	for i := range 3 {
		v := lazy.In(s, func(ctx context.Context) (int, error) { return 0, g.Do(ctx, i) })
		ws, vs = append(ws, v), append(vs, v)
	}
	var p *lazy.PanicError
	require.ErrorAs(t, catch(func() { _ = lazy.All(t.Context(), ws...) }).(error), &p)
	require.Equal(t, "no", p.Value)
	for _, v := range vs {
		_, _, panicked := get(t.Context(), v)
		require.Same(t, p, panicked)
	}
	_ = s.Close()
}

func TestGatherIsCancelledWhenEverybodyLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		g := lazy.NewGather(func(ctx context.Context, _ []int) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		})
		left := errors.New("left")
		var wg sync.WaitGroup
		for i := range 3 {
			ctx, leave := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Duration(i+1)*time.Second, func() { leave(left) })
			wg.Go(func() {
				if err := g.Do(ctx, i); !errors.Is(err, left) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		require.ErrorContains(t, cause, "every waiter left")
	})
}

func TestGatherInAScopeGoesOnWithoutThoseWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served []int
		g := lazy.NewGather(func(ctx context.Context, items []int) error {
			served = items
			return pause(ctx, time.Minute)
		})
		s := lazy.NewScope(t.Context())
		release := s.Hold()
		ctx, leave := context.WithTimeout(s.Context(), time.Second)
		defer leave()
		lazy.Go(s, func(context.Context) (int, error) { return 0, g.Do(ctx, 1) })
		stays := lazy.Go(s, func(ctx context.Context) (int, error) { return 0, g.Do(ctx, 2) })
		<-time.After(2 * time.Second)
		release()
		require.NoError(t, stays.Wait(t.Context()))
		slices.Sort(served)
		require.Equal(t, []int{1, 2}, served)
		require.NoError(t, s.Close())
	})
}

func TestGatherOfAClosedScope(t *testing.T) {
	g := lazy.NewGather(func(context.Context, []int) error { return nil })
	s := lazy.NewScope(t.Context())
	release := s.Hold()
	v := lazy.Go(s, func(ctx context.Context) (int, error) { return 0, g.Do(context.WithoutCancel(ctx), 1) })
	require.NoError(t, s.Close())
	require.ErrorIs(t, v.Wait(t.Context()), lazy.ErrClosed)
	release()
}

// TestGatherStress has many scopes with tasks that ask, wait for one another and
// leave, all on one Gather: nobody hangs, nothing is served twice or not at all.
func TestGatherStress(t *testing.T) {
	var served sync.Map
	g := lazy.NewGather(func(_ context.Context, items []string) error {
		for _, item := range items {
			if _, twice := served.LoadOrStore(item, true); twice {
				return fmt.Errorf("%s was served twice", item)
			}
		}
		return nil
	})
	var wg sync.WaitGroup
	for scope := range 30 {
		wg.Go(func() {
			s := lazy.NewScope(t.Context())
			var ws []lazy.Waiter
			for task := range 8 {
				ws = append(ws, lazy.In(s, func(ctx context.Context) (int, error) {
					for step := range 5 {
						if task > 0 && step == task%3 {
							if err := ws[task-1].Wait(ctx); err != nil {
								return 0, err
							}
						}
						item := fmt.Sprint(scope, "/", task, "/", step)
						if err := g.Do(ctx, item); err != nil {
							return 0, err
						}
						if _, ok := served.Load(item); !ok {
							return 0, fmt.Errorf("%s was not served", item)
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
