package reqctx_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestBatchRunsOnTheReadersGoroutine(t *testing.T) {
	load := reqctx.NewBatch[int, bool]("load")
	reg := quiet()
	type key struct{}
	reqctx.ProvideBatch(reg, load, func(ctx context.Context, _ []int) (map[int]bool, error) {
		return map[int]bool{1: reqctx.From(ctx) != nil && ctx.Value(key{}) == "request"}, nil
	})
	c := requestOf(t, context.WithValue(t.Context(), key{}, "request"), reg)
	got, err := load.Get(context.WithValue(c, key{}, "reader"), 1)
	require.NoError(t, err)
	require.True(t, got, "under the request's context")
	require.True(t, c.Idle(), "nothing is left to finish")
}

// loader is a batch property that remembers its calls.
type loader struct {
	reqctx.Batch[string, string]
	mu    sync.Mutex
	calls [][]string
	takes time.Duration
}

// provideLoader adds the batch property load, and properties that ask it, each for its
// own name.
func provideLoader(reg *reqctx.Registry, timeout time.Duration, names ...string) *loader {
	l := &loader{Batch: reqctx.NewBatch[string, string]("load")}
	reqctx.ProvideBatch(reg, l.Batch, func(ctx context.Context, keys []string) (map[string]string, error) {
		l.mu.Lock()
		l.calls = append(l.calls, keys)
		l.mu.Unlock()
		if l.takes > 0 {
			if _, err := takes(l.takes, 0)(ctx); err != nil {
				return nil, err
			}
		}
		found := map[string]string{}
		for _, k := range keys {
			found[k] = k + "!"
		}
		return found, nil
	})
	for _, name := range names {
		provide(reg, name, reqctx.Prop[string]{
			Timeout: timeout,
			Resolve: func(ctx context.Context) (string, error) { return l.Get(ctx, name) },
		})
	}
	return l
}

// seen returns the calls so far, and forgets them.
func (l *loader) seen() [][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := l.calls
	l.calls = nil
	return calls
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
	v, err := reqctx.Get(c, "load")
	require.NoError(t, err)
	require.IsType(t, (*lazy.Batch[int, int])(nil), v)
	require.NoError(t, c.Finish())
	_, err = load.Get(c, 1)
	require.ErrorIs(t, err, reqctx.ErrFinished)
	_, err = load.GetAll(c, nil)
	require.ErrorIs(t, err, reqctx.ErrFinished)
	_, err = load.GetAll(t.Context(), nil)
	require.ErrorIs(t, err, reqctx.ErrNoRequest)
}

// A list asks for what the request neither has nor is loading, in one call.
func TestBatchGetAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		load := provideLoader(reg, 0)
		for range 2 { // each request has its own values
			c := reqctx.New(t.Context(), reg)
			got, err := load.Get(c, "a")
			require.NoError(t, err)
			require.Equal(t, "a!", got)
			load.takes = time.Second
			began := time.Now()
			one := make(chan error)
			go func() { _, err := load.Get(c, "b"); one <- err }()
			synctest.Wait()
			all, err := load.GetAll(c, []string{"c", "b", "a", "c", "d"})
			require.NoError(t, err)
			require.Equal(t, []string{"c!", "b!", "a!", "c!", "d!"}, all)
			require.Equal(t, time.Second, time.Since(began))
			require.NoError(t, <-one)
			require.Equal(t, [][]string{{"a"}, {"b"}, {"c", "d"}}, load.seen())
			all, err = load.GetAll(c, []string{"d", "a"})
			require.NoError(t, err)
			require.Equal(t, []string{"d!", "a!"}, all)
			require.Empty(t, load.seen(), "kept for the request")
			require.NoError(t, c.Finish())
			load.takes = 0
		}
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
