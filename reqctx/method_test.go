package reqctx_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestMemoIsKeptForTheRequest(t *testing.T) {
	square := reqctx.NewMemo[int, int]("square")
	reg := quiet()
	var calls []int
	fail := errors.New("fail")
	reqctx.ProvideMemo(reg, square, func(_ context.Context, n int) (int, error) {
		calls = append(calls, n)
		if n < 0 {
			return 0, fail
		}
		return n * n, nil
	})
	for range 2 { // each request has its own
		c := reqctx.New(t.Context(), reg)
		for range 2 {
			got, err := square.Get(c, 3)
			require.NoError(t, err)
			require.Equal(t, 9, got)
			_, err = square.Get(c, -1)
			require.ErrorIs(t, err, fail, "errors too")
		}
		v, err := c.Get("square")
		require.NoError(t, err)
		require.IsType(t, (*lazy.Memo[int, int])(nil), v)
		require.NoError(t, c.Finish())
		_, err = square.Get(c, 3)
		require.ErrorIs(t, err, reqctx.ErrFinished)
	}
	require.Equal(t, []int{3, -1, 3, -1}, calls)
	_, err := square.Get(t.Context(), 1)
	require.ErrorIs(t, err, reqctx.ErrNoRequest)
	require.Equal(t, "square", square.Name())
}

func TestMemoRunsOnTheReadersGoroutine(t *testing.T) {
	m := reqctx.NewMemo[int, bool]("m")
	reg := quiet()
	type key struct{}
	reqctx.ProvideMemo(reg, m, func(ctx context.Context, _ int) (bool, error) {
		return reqctx.From(ctx) != nil && ctx.Value(key{}) == "request", nil
	})
	c := reqctx.New(context.WithValue(t.Context(), key{}, "request"), reg)
	got, err := m.Get(context.WithValue(c, key{}, "reader"), 1)
	require.NoError(t, err)
	require.True(t, got, "under the request's context")
	require.True(t, c.Idle(), "nothing is left to finish")
	require.NoError(t, c.Finish())
}

func TestBatchOfAResolveIsOneCall(t *testing.T) {
	load := reqctx.NewBatch[string, string]("load")
	a, b := reqctx.NewKey[string]("a"), reqctx.NewKey[string]("b")
	reg := quiet()
	var mu sync.Mutex
	var calls [][]string
	reqctx.ProvideBatch(reg, load, func(_ context.Context, keys []string) (map[string]string, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, keys)
		found := map[string]string{}
		for _, k := range keys {
			found[k] = k + "!"
		}
		return found, nil
	})
	get := func(k string) reqctx.Prop[string] {
		return reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) { return load.Get(ctx, k) }}
	}
	reqctx.Provide(reg, a, get("a"))
	reqctx.Provide(reg, b, get("b"))
	for range 100 {
		calls = nil
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Resolve("a", "b"))
		require.Len(t, calls, 1)
		slices.Sort(calls[0])
		require.Equal(t, []string{"a", "b"}, calls[0])
		got, err := load.Get(c, "a")
		require.NoError(t, err)
		require.Equal(t, "a!", got)
		require.Len(t, calls, 1, "kept for the request")
		require.NoError(t, c.Finish())
	}
}

func TestBatchOfASingleReader(t *testing.T) {
	load := reqctx.NewBatch[int, int]("load")
	reg := quiet()
	reqctx.ProvideBatch(reg, load, func(_ context.Context, keys []int) (map[int]int, error) {
		return map[int]int{1: 1}, nil
	})
	c := reqctx.New(t.Context(), reg)
	got, err := load.Get(c, 1)
	require.NoError(t, err)
	require.Equal(t, 1, got)
	_, err = load.Get(c, 2)
	require.ErrorIs(t, err, lazy.ErrMissing)
	require.Equal(t, "load", load.Name())
	require.NoError(t, c.Finish())
}
