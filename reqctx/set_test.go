package reqctx_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

func TestSetReplacesWhateverThereIs(t *testing.T) {
	reg := quiet()
	ok := provide(reg, "ok", reqctx.Prop[int]{Resolve: gives(1, nil)})
	failed := provide(reg, "failed", reqctx.Prop[int]{Resolve: gives(0, errBoom)})
	bad := provide(reg, "bad", reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { panic(errBoom) }})
	unread := provide(reg, "unread", reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { panic("resolved") }})
	c := request(t, reg)
	_, _ = ok.Get(c)
	_, _ = failed.Get(c)
	panicOf(func() { _, _ = bad.Get(c) })
	for _, k := range []reqctx.Key[int]{ok, failed, bad, unread} {
		require.NoError(t, k.Set(context.WithValue(c, depthKey(0), 0), 9))
		requireGet(t, c, k, 9)
	}
}

func TestSetWhileResolving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		k := provide(reg, "k", reqctx.Prop[string]{
			Resolve: stubborn(time.Second, "resolved"),
			Commit:  func(_ context.Context, v string, _ int, _ http.Header) error { j.add("commit " + v); return nil },
			Close:   func(_ context.Context, v string, _ error) error { j.add("close " + v); return nil },
		})
		c := reqctx.New(t.Context(), reg)
		derived, cancel := context.WithCancel(c)
		defer cancel()
		start := time.Now()
		var wg sync.WaitGroup
		for _, tc := range []struct {
			ctx   context.Context
			after time.Duration
		}{
			{c, time.Second}, // this reader runs the resolution
			{c, time.Millisecond},
			{derived, time.Millisecond},
		} {
			wg.Go(func() {
				v, err := k.Get(tc.ctx)
				assert.NoError(t, err)
				assert.Equal(t, "set", v)
				assert.Equal(t, tc.after, time.Since(start))
			})
			synctest.Wait() // now the first reader has begun the resolution
		}
		<-time.After(time.Millisecond)
		require.NoError(t, k.Set(c, "set"))
		wg.Wait()
		requireGet(t, c, k, "set")
		require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
		require.NoError(t, c.Finish())
		require.Equal(t, []string{"commit set", "close resolved"}, j.all())
	})
}

func TestSetInsideItsOwnResolve(t *testing.T) {
	reg := quiet()
	var k reqctx.Key[int]
	k = provide(reg, "k", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
		require.NoError(t, k.Set(ctx, 2))
		requireGet(t, ctx, k, 2)
		return 1, errBoom
	}})
	c := request(t, reg)
	requireGet(t, c, k, 2)
	requireGet(t, c, k, 2)
}

func TestStoreDecidesOnSet(t *testing.T) {
	reg := quiet()
	var stored []any
	k := provide(reg, "k", reqctx.Prop[int]{
		Resolve: gives(1, nil),
		Store: func(ctx context.Context, v int) error {
			stored = append(stored, ctx.Value(depthKey(0)), v)
			switch {
			case v < 0:
				return errBoom
			case v == 0:
				panic(errBoom)
			}
			return nil
		},
	})
	c := request(t, reg)
	ctx := context.WithValue(c, depthKey(0), "caller")
	_, _ = k.Get(c)
	require.ErrorIs(t, k.Set(ctx, -1), errBoom)
	require.Equal(t, errBoom, panicOf(func() { _ = k.Set(ctx, 0) }))
	requireGet(t, c, k, 1)
	require.NoError(t, reqctx.Set(ctx, "k", 2))
	requireGet(t, c, k, 2)
	require.Equal(t, []any{"caller", -1, "caller", 0, "caller", 2}, stored)
}

func TestCommitWhileStoring(t *testing.T) {
	reg := quiet()
	var c *reqctx.Host
	k := provide(reg, "k", reqctx.Prop[int]{
		Resolve: gives(1, nil),
		Store:   func(context.Context, int) error { return c.Commit(http.StatusOK, http.Header{}) },
	})
	c = reqctx.New(t.Context(), reg)
	require.ErrorIs(t, k.Set(c, 2), reqctx.ErrCommitted)
	requireGet(t, c, k, 1)
	require.NoError(t, c.Finish())
}

func TestSetByName(t *testing.T) {
	reg := quiet()
	number := provide(reg, "number", reqctx.Prop[int]{Resolve: gives(1, nil)})
	pointer := provide(reg, "pointer", reqctx.Prop[*user]{Resolve: gives(&user{}, nil)})
	face := provide(reg, "interface", reqctx.Prop[fmt.Stringer]{Resolve: gives[fmt.Stringer](nil, errBoom)})
	c := request(t, reg)

	err := reqctx.Set(c, "number", "2")
	require.ErrorIs(t, err, reqctx.ErrType)
	require.ErrorContains(t, err, `property "number" holds int, not string`)
	require.ErrorIs(t, reqctx.Set(c, "number", int64(2)), reqctx.ErrType)
	require.ErrorIs(t, reqctx.Set(c, "number", nil), reqctx.ErrType)
	require.ErrorIs(t, reqctx.Set(c, "pointer", user{}), reqctx.ErrType)
	require.ErrorIs(t, reqctx.Set(c, "interface", 1), reqctx.ErrType)
	requireGet(t, c, number, 1)

	require.NoError(t, reqctx.Set(c, "number", 2))
	require.NoError(t, reqctx.Set(c, "pointer", nil))
	require.NoError(t, reqctx.Set(c, "interface", time.Second))
	requireGet(t, c, number, 2)
	requireGet(t, c, pointer, nil)
	requireGet[fmt.Stringer](t, c, face, time.Second)
	require.NoError(t, reqctx.Set(c, "interface", nil))
	requireGet(t, c, face, nil)
}

func TestSetAfterCommit(t *testing.T) {
	reg := quiet()
	k := provide(reg, "cart", reqctx.Prop[int]{
		Resolve: gives(1, nil),
		Store:   func(context.Context, int) error { panic("stored") },
	})
	c := reqctx.New(t.Context(), reg)
	require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
	for _, err := range []error{k.Set(c, 2), reqctx.Set(c, "cart", 2)} {
		require.ErrorIs(t, err, reqctx.ErrCommitted)
		require.NotErrorIs(t, err, reqctx.ErrFinished)
		require.ErrorContains(t, err, `"cart"`)
	}
	requireGet(t, c, k, 1)
	require.NoError(t, c.Finish())
	require.ErrorIs(t, k.Set(c, 2), reqctx.ErrFinished)
}

func TestInvalidateWhileResolving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		var calls atomic.Int32
		k := provide(reg, "k", reqctx.Prop[string]{
			Resolve: func(context.Context) (string, error) {
				v := fmt.Sprint("v", calls.Add(1))
				<-time.After(time.Second)
				return v, nil
			},
			Close: func(_ context.Context, v string, _ error) error { j.add(v); return nil },
		})
		c := reqctx.New(t.Context(), reg)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { assertGet(t, c, k, "v1") })
		}
		<-time.After(500 * time.Millisecond)
		require.NoError(t, k.Invalidate(c))
		requireGet(t, c, k, "v2")
		wg.Wait()
		requireGet(t, c, k, "v2")
		require.NoError(t, c.Finish())
		require.Equal(t, []string{"v2", "v1"}, j.all())
		require.ErrorIs(t, k.Invalidate(c), reqctx.ErrFinished)
	})
}

func TestInvalidateForgetsEveryOutcome(t *testing.T) {
	reg := quiet()
	calls := 0
	k := provide(reg, "k", reqctx.Prop[int]{Resolve: func(context.Context) (int, error) {
		if calls++; calls == 1 {
			panic(errBoom)
		}
		return calls, nil
	}})
	c := request(t, reg)
	require.NoError(t, k.Invalidate(c), "there is nothing to forget")
	require.NotNil(t, panicOf(func() { _, _ = k.Get(c) }))
	require.NoError(t, k.Invalidate(c))
	requireGet(t, c, k, 2)
	require.NoError(t, k.Set(c, 9))
	require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
	require.NoError(t, k.Invalidate(c), "also after commit: only reading is left")
	requireGet(t, c, k, 3)
}
