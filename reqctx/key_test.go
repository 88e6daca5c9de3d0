package reqctx_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestGetResolvesOnceForEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var calls atomic.Int32
		k := provide(reg, "slow", reqctx.Prop[int32]{Resolve: func(context.Context) (int32, error) {
			<-time.After(50 * time.Millisecond)
			return calls.Add(1), nil
		}})
		for n := range int32(2) {
			c := request(t, reg)
			derived, cancel := context.WithCancel(c)
			defer cancel()
			start := time.Now()
			var wg sync.WaitGroup
			for range 50 {
				for _, ctx := range []context.Context{c, derived} {
					wg.Go(func() { assertGet(t, ctx, k, n+1) })
				}
			}
			wg.Wait()
			require.Equal(t, 50*time.Millisecond, time.Since(start))
		}
	})
}

func TestNothingIsResolvedUnread(t *testing.T) {
	reg := quiet()
	provide(reg, "unread", reqctx.Prop[int]{
		Resolve: func(context.Context) (int, error) { panic("resolved") },
		Commit:  func(context.Context, int, int, http.Header) error { panic("committed") },
		Close:   func(context.Context, int, error) error { panic("closed") },
		Vary:    []string{"Cookie"},
	})
	c := reqctx.New(t.Context(), reg)
	h := http.Header{}
	require.NoError(t, c.Commit(http.StatusOK, h))
	require.NoError(t, c.Finish())
	require.Empty(t, h)
}

func TestRequireReturnsTheErrorOfTheProperty(t *testing.T) {
	reg := quiet()
	nothing := provide(reg, "nothing", reqctx.Prop[*int]{Resolve: gives[*int](nil, nil)})
	broken := provide(reg, "broken", reqctx.Prop[int]{Resolve: gives(1, errBoom)})
	c := request(t, reg)
	require.NoError(t, nothing.Require(c), "a nil value is a value")
	require.Equal(t, errBoom, broken.Require(c))
	require.Equal(t, "nothing", nothing.String())
}

func TestErrorIsSharedAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		calls := 0
		k := provide(reg, "fails", reqctx.Prop[int]{Resolve: func(context.Context) (int, error) {
			calls++
			<-time.After(time.Millisecond)
			return 7, errBoom
		}})
		c := request(t, reg)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				_, err := k.Get(c)
				assert.ErrorIs(t, err, errBoom)
			})
		}
		wg.Wait()
		v, err := k.Get(c)
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, 7, v, "a value beside an error is passed on, too")
		require.Equal(t, 1, calls)

		require.NoError(t, k.Invalidate(c))
		_, err = k.Get(c)
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, 2, calls)
	})
}

func TestPanicReachesEveryReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		k := provide(reg, "bad", reqctx.Prop[int]{Resolve: func(context.Context) (int, error) {
			<-time.After(time.Millisecond)
			panic(errBoom)
		}})
		c := reqctx.New(t.Context(), reg)
		derived, cancel := context.WithCancel(c)
		defer cancel()
		var got [3]any
		var wg sync.WaitGroup
		wg.Go(func() { got[0] = panicOf(func() { _, _ = k.Get(c) }) })
		wg.Go(func() { got[1] = panicOf(func() { _, _ = k.Get(derived) }) })
		wg.Go(func() { got[2] = panicOf(func() { _ = reqctx.Resolve(c, "bad") }) })
		wg.Wait()
		p, ok := got[0].(*lazy.PanicError)
		require.True(t, ok, "%v", got[0])
		require.Same(t, p, got[1])
		require.Same(t, p, got[2])
		require.Equal(t, "bad", p.Name)
		require.ErrorIs(t, p, errBoom)
		require.Contains(t, string(p.Stack), "TestPanicReachesEveryReader")

		require.Same(t, p, panicOf(func() { _, _ = k.Get(c) }), "it is kept")
		require.Same(t, p, panicOf(func() { _, _ = reqctx.Get(c, "bad") }))
		_, err, ok := k.Peek(c)
		require.True(t, ok)
		require.Same(t, p, err)
		require.NoError(t, c.Finish(), "a panic that was seen is not reported again")
	})
}

func TestPropertyThatIsNotThere(t *testing.T) {
	k := reqctx.NewKey[int]("missing")
	require.Nil(t, reqctx.From(context.Background()))
	for use, err := range errorsOf(context.Background(), k) {
		require.ErrorIs(t, err, reqctx.ErrNoRequest, use)
		require.ErrorContains(t, err, "of Server.Wrap", use) // what may be missing
		require.ErrorContains(t, err, `"missing"`, use)
	}
	reg := quiet()
	provide(reg, "there", reqctx.Prop[int]{})
	provide(reg, "also", reqctx.Prop[int]{})
	for _, k := range []reqctx.Key[int]{k, {}} {
		for use, err := range errorsOf(request(t, reg), k) {
			require.ErrorIs(t, err, reqctx.ErrNoProperty, use)
			require.ErrorContains(t, err, k.Name()+`" (provided: also, there)`, use)
		}
	}
	require.ErrorIs(t, reqctx.Resolve(request(t, reg), "there", "missing"), reqctx.ErrNoProperty)
}

func TestPropertyWithoutResolve(t *testing.T) {
	reg := quiet()
	k := provide(reg, "given", reqctx.Prop[int]{
		Close: func(context.Context, int, error) error { return errBoom },
	})
	c := reqctx.New(t.Context(), reg)
	err := k.Require(c)
	require.ErrorIs(t, err, reqctx.ErrNoValue)
	require.ErrorContains(t, err, `"given"`)
	require.NoError(t, k.Set(c, 4))
	requireGet(t, c, k, 4)
	require.NoError(t, c.Finish(), "there was no Resolve that Close could undo")
}

func TestPeekNeverResolves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		k := provide(reg, "slow", reqctx.Prop[int]{Resolve: takes(time.Minute, 3)})
		c := reqctx.New(t.Context(), reg)
		_, err, ok := k.Peek(c)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, k.Start(c))
		synctest.Wait()
		_, _, ok = k.Peek(c)
		require.False(t, ok, "on its way")
		_, _ = k.Get(c)
		v, err, ok := k.Peek(context.WithValue(c, depthKey(0), 1))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 3, v)
		require.NoError(t, c.Finish())
		_, err, ok = k.Peek(c)
		require.False(t, ok)
		require.ErrorIs(t, err, reqctx.ErrFinished)
	})
}

func TestDerivedContextsLeadBack(t *testing.T) {
	reg := quiet()
	k := provide(reg, "k", reqctx.Prop[*user]{Resolve: func(context.Context) (*user, error) { return &user{"ada"}, nil }})
	c := request(t, reg)
	r := new(http.Request)
	c.SetRequest(r)
	value := context.WithValue(c, depthKey(0), "v")
	timeout, cancel := context.WithTimeout(value, time.Hour)
	defer cancel()
	first, err := k.Get(timeout)
	require.NoError(t, err)
	for _, ctx := range []context.Context{c, value, timeout, context.WithoutCancel(timeout)} {
		require.Same(t, &c.Context, reqctx.From(ctx))
		require.Same(t, r, reqctx.From(ctx).Request())
		u, err := k.Get(ctx)
		require.NoError(t, err)
		require.Same(t, first, u)
		byName, err := reqctx.Get(ctx, "k")
		require.NoError(t, err)
		require.Same(t, first, byName)
	}
}

func TestResolveRunsUnderTheRequestsContext(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"inline": 0, "timeout": time.Hour} {
		t.Run(name, func(t *testing.T) {
			reg := quiet()
			k := provide(reg, "k", reqctx.Prop[[2]any]{Timeout: timeout, Resolve: func(ctx context.Context) ([2]any, error) {
				return [2]any{ctx.Value(depthKey(1)), ctx.Value(depthKey(2))}, nil
			}})
			c := requestOf(t, context.WithValue(t.Context(), depthKey(1), "request"), reg)
			v, err := k.Get(context.WithValue(c, depthKey(2), "reader"))
			require.NoError(t, err)
			require.Equal(t, [2]any{"request", nil}, v)
		})
	}
}

func TestReaderLeavesWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		calls := 0
		k := provide(reg, "slow", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
			calls++
			return takes(time.Second, 5)(ctx)
		}})
		c := request(t, reg)
		start := time.Now()
		ctx, cancel := context.WithTimeoutCause(c, time.Millisecond, errBoom)
		defer cancel()
		_, err := k.Get(ctx)
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, time.Millisecond, time.Since(start))
		_, err = k.Get(ctx)
		require.ErrorIs(t, err, errBoom, "at once")
		require.Equal(t, time.Millisecond, time.Since(start))

		requireGet(t, c, k, 5)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, 1, calls)
		requireGet(t, ctx, k, 5)
	})
}

// No resolution begins after the request or the reader's context has ended.
func TestNothingBeginsWithAnEndedContext(t *testing.T) {
	reg := quiet()
	resolve := func(context.Context) (int, error) { panic("resolved") }
	k := provide(reg, "k", reqctx.Prop[int]{Resolve: resolve})
	provide(reg, "other", reqctx.Prop[int]{Resolve: resolve})
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	request := reqctx.New(ended, reg)
	reader := reqctx.New(t.Context(), reg)
	left, leave := context.WithCancelCause(reader)
	leave(errBoom)
	for _, ctx := range []context.Context{request, left} {
		_, err := k.Get(ctx)
		require.ErrorIs(t, err, errBoom)
		require.ErrorIs(t, k.Start(ctx), errBoom)
		require.EqualError(t, reqctx.Resolve(ctx, "k", "other"), "k: boom\nother: boom")
	}
	require.NoError(t, request.Finish())
	require.NoError(t, reader.Finish(), "which has no panic")
}
