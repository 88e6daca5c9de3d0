package reqctx_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

func TestSecondPropertyOfANamePanics(t *testing.T) {
	reg := quiet()
	k := provide(reg, "user", reqctx.Prop[int]{})
	require.PanicsWithValue(t, `reqctx: property "user" is already provided, with type int; this one has string`,
		func() { provide(reg, "user", reqctx.Prop[string]{}) })
	require.Panics(t, func() { reqctx.Provide(reg, k, reqctx.Prop[int]{}) })

	require.Contains(t, panicOf(func() { provideState(reg, "user", "v") }), `"user" is already provided`)
	require.PanicsWithValue(t, "reqctx: Provide of a zero Key; make keys with NewKey",
		func() { reqctx.Provide(reg, reqctx.Key[int]{}, reqctx.Prop[int]{}) })

	c := request(t, reg)
	require.NoError(t, reqctx.Set(c, "user", 1), "the registry is as it was, and not locked")
	provide(reg, "other", reqctx.Prop[int]{})
}

func TestRequestKeepsThePropertiesItBeganWith(t *testing.T) {
	reg := quiet()
	provide(reg, "first", reqctx.Prop[int]{})
	c := reqctx.New(t.Context(), reg)
	late := provide(reg, "late", reqctx.Prop[int]{Resolve: gives(1, nil)})
	require.ErrorIs(t, late.Require(c), reqctx.ErrNoProperty)
	require.NoError(t, c.Finish())

	c = reqctx.New(t.Context(), reg)
	requireGet(t, c, late, 1)
	require.NoError(t, c.Finish())
}

func TestKeyInTwoRegistries(t *testing.T) {
	one, two := quiet(), quiet()
	provide(two, "filler", reqctx.Prop[int]{})
	k := provide(one, "k", reqctx.Prop[int]{Resolve: gives(1, nil)})
	reqctx.Provide(two, k, reqctx.Prop[int]{Resolve: gives(2, nil)})
	for want, reg := range map[int]*reqctx.Registry{1: one, 2: two} {
		c := request(t, reg)
		requireGet(t, c, k, want)
	}
}

func TestAnyNumberOfProperties(t *testing.T) {
	for _, n := range []int{1, 20, 21, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			reg := quiet()
			var j journal
			keys := make([]reqctx.Key[int], n)
			for i := range keys {
				keys[i] = provide(reg, fmt.Sprint("p", i), reqctx.Prop[int]{
					Resolve: gives(i, nil),
					Close:   func(_ context.Context, v int, _ error) error { j.add(fmt.Sprint(v)); return nil },
				})
			}
			c := reqctx.New(t.Context(), reg)
			for i, k := range keys {
				requireGet(t, c, k, i)
			}
			for i, k := range keys {
				v, err, ok := k.Peek(c)
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, i, v)
			}
			require.NoError(t, c.Finish())
			require.Len(t, j.all(), n)
			require.Equal(t, fmt.Sprint(n-1), j.all()[0])
			for _, k := range keys {
				require.ErrorIs(t, k.Require(c), reqctx.ErrFinished)
			}
		})
	}
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	reg := quiet()
	k := provide(reg, "k", reqctx.Prop[int]{Resolve: gives(1, nil)})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { provide(reg, fmt.Sprint("p", i), reqctx.Prop[int]{}) })
		wg.Go(func() {
			c := reqctx.New(t.Context(), reg)
			v, err := k.Get(c)
			assert.NoError(t, err)
			assert.Equal(t, 1, v)
			assert.NoError(t, c.Finish())
		})
	}
	wg.Wait()
	c := reqctx.New(t.Context(), reg)
	for i := range 8 {
		require.NoError(t, reqctx.Set(c, fmt.Sprint("p", i), i), "no Provide is lost")
	}
	require.NoError(t, c.Finish())
}

func TestLoggerIsNeverNil(t *testing.T) {
	c := reqctx.New(t.Context(), reqctx.NewRegistry(reqctx.Options{}))
	require.Same(t, slog.Default(), c.Logger())
	mine := slog.New(slog.DiscardHandler)
	c = reqctx.New(t.Context(), reqctx.NewRegistry(reqctx.Options{Logger: mine}))
	require.Same(t, mine, c.Logger())
}
