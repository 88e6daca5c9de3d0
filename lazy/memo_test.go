package lazy_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

func TestMemoComputesOncePerArgument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		m := lazy.NewMemo(func(ctx context.Context, n int) (int, error) {
			calls.Add(1)
			return n * n, pause(ctx, 50*time.Millisecond)
		})
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if got, err := m.Get(t.Context(), i%4); err != nil || got != (i%4)*(i%4) {
					t.Errorf("%d: %d, %v", i%4, got, err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 4, calls.Load())
		require.Equal(t, 50*time.Millisecond, time.Since(began))
	})
}

func TestMemoForgetsErrorsOutsideOfAScope(t *testing.T) {
	fail := errors.New("fail")
	var calls int
	fn := func(context.Context, string) (int, error) {
		if calls++; calls == 1 {
			return 0, fail
		}
		return calls, nil
	}
	m := lazy.NewMemo(fn)
	_, err := m.Get(t.Context(), "k")
	require.ErrorIs(t, err, fail)
	got, err := m.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, 2, got)

	calls = 0
	s := lazy.NewScope(t.Context())
	defer s.Close()
	kept := lazy.MemoIn(s, fn)
	for range 2 {
		_, err = kept.Get(t.Context(), "k")
		require.ErrorIs(t, err, fail, "a scope keeps errors")
	}
}

func TestMemoSetForgetResetPeek(t *testing.T) {
	var calls int
	m := lazy.NewMemo(func(_ context.Context, k string) (string, error) { calls++; return k + "!", nil })
	_, _, ok := m.Peek("a")
	require.False(t, ok)
	m.Set("a", "set")
	got, err := m.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "set", got)
	got, _, ok = m.Peek("a")
	require.True(t, ok)
	require.Equal(t, "set", got)
	m.Forget("a")
	got, err = m.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "a!", got)
	m.Reset()
	_, _, ok = m.Peek("a")
	require.False(t, ok)
	require.Equal(t, 1, calls)
}

func TestMemoCycleNamesTheArguments(t *testing.T) {
	s := lazy.NewScope(t.Context())
	defer s.Close()
	var m *lazy.Memo[int, int]
	m = lazy.MemoIn(s, func(ctx context.Context, n int) (int, error) { return m.Get(ctx, (n+1)%3) })
	_, err := m.Get(t.Context(), 0)
	var cycle *lazy.CycleError
	require.ErrorAs(t, err, &cycle)
	require.Len(t, cycle.Path, 4)
	require.Contains(t, cycle.Path[0], "(0)")
	require.Contains(t, cycle.Path[1], "(1)")
	require.Equal(t, cycle.Path[0], cycle.Path[3])
}

func TestMemoHitDoesNotAllocate(t *testing.T) {
	m := lazy.NewMemo(func(_ context.Context, n int) (int, error) { return n, nil })
	ctx := t.Context()
	_, err := m.Get(ctx, 1)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = m.Get(ctx, 1) }))
}

// The composition that loads many things of one kind: each once, all of a moment in
// one call.
func TestMemoOverBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		s := lazy.NewScope(t.Context())
		m := lazy.MemoIn(s, gathering(c.squares).Get)
		var ws []lazy.Waiter
		for i := range 10 {
			ws = append(ws, lazy.In(s, func(ctx context.Context) (int, error) { return m.Get(ctx, i%3) }))
		}
		require.NoError(t, lazy.All(t.Context(), ws...))
		require.Len(t, c.seen(), 1)
		require.Len(t, c.seen()[0], 3)
		_, err := m.Get(t.Context(), 0)
		require.NoError(t, err)
		require.Len(t, c.seen(), 1)
		require.NoError(t, s.Close())
	})
}

// A computation that was forgotten and then fails leaves the newer result alone.
func TestMemoKeepsTheResultAfterAForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, failed := make(chan struct{}), make(chan error, 1)
		calls := 0
		m := lazy.NewMemo(func(context.Context, string) (int, error) {
			if calls++; calls > 1 {
				return calls, nil
			}
			<-hold
			return 0, errBoom
		})
		go func() {
			_, err := m.Get(t.Context(), "k")
			failed <- err
		}()
		synctest.Wait()
		m.Forget("k")
		_, err := m.Get(t.Context(), "k")
		require.NoError(t, err)
		close(hold)
		require.Equal(t, errBoom, <-failed)
		got, err, ok := m.Peek("k")
		require.True(t, ok)
		require.NoError(t, err)
		require.Equal(t, 2, got)
	})
}

// An argument that cannot be a map's key panics, and the memo goes on.
func TestMemoArgumentWithoutHash(t *testing.T) {
	for name, call := range map[string]func(m *lazy.Memo[any, any], k any){
		"Get":    func(m *lazy.Memo[any, any], k any) { _, _ = m.Get(context.Background(), k) },
		"Peek":   func(m *lazy.Memo[any, any], k any) { _, _, _ = m.Peek(k) },
		"Set":    func(m *lazy.Memo[any, any], k any) { m.Set(k, 1) },
		"Forget": func(m *lazy.Memo[any, any], k any) { m.Forget(k) },
	} {
		t.Run(name, func(t *testing.T) {
			m := lazy.NewMemo(func(_ context.Context, k any) (any, error) { return k, nil })
			err, _ := catch(func() { call(m, []int{1}) }).(error)
			require.ErrorContains(t, err, "unhashable type")
			unlocked := make(chan struct{})
			go func() { m.Reset(); close(unlocked) }()
			select {
			case <-unlocked:
			case <-time.After(20 * time.Second):
				t.Fatal("the memo is locked")
			}
		})
	}
}
