package reqctx_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// GetAll makes one call for the arguments that the request neither has loaded nor is loading.
func TestBatch(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		load := reqctx.NewBatch[int, int]("load")
		var calls [][]int
		reqctx.ProvideBatch(reg, load, func(ctx context.Context, args []int) (map[int]int, error) {
			require.Equal(t, "request", ctx.Value(key{}), "under the request's context")
			require.NotNil(t, reqctx.From(ctx))
			calls = append(calls, args)
			<-time.After(time.Second)
			found := map[int]int{}
			for _, arg := range args {
				found[arg] = -arg
			}
			delete(found, 9)
			return found, nil
		})
		for range 2 { // the second request loads the values again
			c := reqctx.New(context.WithValue(t.Context(), key{}, "request"), reg)
			calls = nil
			got, err := load.Get(context.WithValue(c, key{}, "reader"), 1)
			require.NoError(t, err)
			require.Equal(t, -1, got)
			require.True(t, c.Idle(), "nothing is left to finish")
			began := time.Now()
			one := make(chan error)
			go func() { _, err := load.Get(c, 2); one <- err }()
			synctest.Wait()
			all, err := load.GetAll(c, []int{3, 2, 1, 3, 4})
			require.NoError(t, err)
			require.Equal(t, []int{-3, -2, -1, -3, -4}, all)
			require.Equal(t, time.Second, time.Since(began))
			require.NoError(t, <-one)
			_, err = load.Get(c, 9)
			require.ErrorIs(t, err, lazy.ErrMissing)
			_, err = load.GetAll(c, []int{4, 1, 9})
			require.ErrorIs(t, err, lazy.ErrMissing)
			require.Equal(t, [][]int{{1}, {2}, {3, 4}, {9}}, calls, "kept for the request")

			v, err := reqctx.Get(c, "load")
			require.NoError(t, err)
			require.IsType(t, (*lazy.Batch[int, int])(nil), v)
			require.NoError(t, c.Finish())
			_, err = load.Get(c, 1)
			require.ErrorIs(t, err, reqctx.ErrFinished)
			_, err = load.GetAll(c, nil)
			require.ErrorIs(t, err, reqctx.ErrFinished)
		}
		_, err := load.GetAll(t.Context(), nil)
		require.ErrorIs(t, err, reqctx.ErrNoRequest)
	})
}

// A call of a batch does not wait for running tasks or slow properties.
func TestBatchWaitsForNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		load := reqctx.NewBatch[int, int]("load")
		reqctx.ProvideBatch(reg, load, func(_ context.Context, args []int) (map[int]int, error) {
			return map[int]int{args[0]: -args[0]}, nil
		})
		slow := provide(reg, "slow", reqctx.Prop[int]{Resolve: takes(300*time.Millisecond, 1)})
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Go("heartbeat", func(ctx context.Context) error { <-ctx.Done(); return nil }))
		resolved := make(chan error)
		go func() { _, err := slow.Get(c); resolved <- err }()
		synctest.Wait()
		began := time.Now()
		got, err := load.Get(c, 1)
		require.NoError(t, err)
		require.Equal(t, -1, got)
		require.Zero(t, time.Since(began))
		require.NoError(t, <-resolved)
		require.NoError(t, c.Finish())
	})
}

// The path of a cycle has the names of the properties.
func TestBatchCycle(t *testing.T) {
	author, team := reqctx.NewBatch[int, int]("author"), reqctx.NewBatch[int, int]("team")
	reg := quiet()
	reads := func(b reqctx.Batch[int, int]) lazy.BatchFunc[int, int] {
		return func(ctx context.Context, keys []int) (map[int]int, error) {
			_, err := b.GetAll(ctx, keys)
			return nil, err
		}
	}
	reqctx.ProvideBatch(reg, author, reads(team))
	reqctx.ProvideBatch(reg, team, reads(author))
	c := request(t, reg)
	var cycle *lazy.CycleError
	_, err := author.Get(c, 1)
	require.ErrorAs(t, err, &cycle)
	require.Equal(t, []string{"author", "team", "author"}, cycle.Path)
	_, err = author.GetAll(c, []int{2, 3})
	require.ErrorAs(t, err, &cycle)
}
