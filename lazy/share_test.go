package lazy_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

// 100 goroutines read a value that takes 50 ms to compute. The function is called once, and all get the same result.
// Another value with the same function makes its own call.
func TestRule1OneComputationIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		fn := func(ctx context.Context) (int, error) { return int(calls.Add(1)), pause(ctx, 50*time.Millisecond) }
		s := newScope(t)
		for i, v := range []*lazy.Value[int]{lazy.New(fn), lazy.New(fn), lazy.In(s, fn), lazy.In(s, fn)} {
			began := time.Now()
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if got, err := v.Get(ctx); err != nil || got != i+1 {
						t.Error(got, err)
					}
				})
			}
			wg.Wait()
			require.Equal(t, 50*time.Millisecond, time.Since(began))
			require.EqualValues(t, i+1, calls.Load())
		}
	})
}

func TestRule2HitDoesNotAllocate(t *testing.T) {
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
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = v.Peek() }))
	}
}

// A computed value keeps neither its computation nor the first caller's context in memory.
func TestHitKeepsNothingButTheValue(t *testing.T) {
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
			requireGet(t, t.Context(), v, "v")
			return
		case <-time.After(10 * time.Millisecond):
			require.Less(t, i, 500, "the first caller's context is still reachable")
		}
	}
}

// The function, and the methods of contexts and errors, may use the value and its scope. If the package held a mutex,
// they would block for ever.
func TestRule8NoMutexIsHeldAcrossUserCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		var v *lazy.Value[int]
		reenter := func() {
			_, _, _ = v.Peek()
			_ = s.Idle()
			_ = s.Spawn("nothing", func(context.Context) error { return nil })
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
		go func() { _ = v.Wait(ctx) }()
		synctest.Wait()
		require.Equal(t, 2, runs)
		require.NoError(t, s.Close())

		v = lazy.New(func(context.Context) (int, error) {
			v.Set(1)
			v.Reset()
			v.Set(2)
			return 3, nil
		})
		requireGet(t, t.Context(), v, 1)

		alone := lazy.New(func(ctx context.Context) (int, error) { return 3, pause(ctx, time.Second) })
		ctx.fn = func() { _, _, _ = alone.Peek() }
		go func() { _ = alone.Wait(ctx) }()
		requireGet(t, ctx, alone, 3)
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

// callingError calls fn in its Is method.
type callingError struct{ fn func() }

func (callingError) Error() string   { return "calling" }
func (e callingError) Is(error) bool { e.fn(); return false }
