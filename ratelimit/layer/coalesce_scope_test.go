package layer

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// gathering is a store that, as the one on Redis does, makes one call of what the
// computations of a scope ask for.
type gathering struct {
	inner  ratelimit.Store
	gather *lazy.Gather[*gathered]
	calls  atomic.Int32
}

type gathered struct {
	op  ratelimit.Op
	res ratelimit.Result
	err error
}

func newGathering(inner ratelimit.Store) *gathering {
	g := &gathering{inner: inner}
	g.gather = lazy.NewGather(func(ctx context.Context, asked []*gathered) error {
		g.calls.Add(1)
		for _, a := range asked {
			a.res, a.err = ratelimit.DoOne(inner)(ctx, a.op)
		}
		return nil
	})
	return g
}

func (g *gathering) Do(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
	panic("not asked for")
}

func (g *gathering) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	a := &gathered{op: op}
	if err := g.gather.Do(ctx, a); err != nil {
		return ratelimit.Result{}, err
	}
	return a.res, a.err
}

// inScope runs test with a Coalesce over a gathering store over a spy, and a scope.
func inScope(t *testing.T, test func(s *scoped)) {
	synctest.Test(t, func(t *testing.T) {
		memory, _ := newMemory(t)
		s := &scoped{T: t, spy: &spy{Store: memory}, Scope: lazy.NewScope(t.Context())}
		s.store = newGathering(s.spy)
		c, err := NewCoalesce(s.store, CoalesceOptions{})
		require.NoError(t, err)
		s.c = c
		test(s)
		require.NoError(t, s.Close())
		synctest.Wait()
		(&queueing{T: t, Coalesce: c}).empty()
	})
}

type scoped struct {
	*testing.T
	*lazy.Scope
	spy   *spy
	store *gathering
	c     *Coalesce
}

// take is a computation that takes.
func (s *scoped) take(key string) *lazy.Value[ratelimit.Result] {
	return lazy.Go(s.Scope, func(ctx context.Context) (ratelimit.Result, error) {
		return s.c.DoOne(ctx, take(gcra(10), key, 1))
	})
}

func (s *scoped) all(values ...lazy.Waiter) {
	s.Helper()
	require.NoError(s, lazy.All(s.Scope.Context(), values...))
}

// A call of the first would wait for the second, which would wait for that call.
func TestComputationsOfAScopeThatTakeFromOneKey(t *testing.T) {
	inScope(t, func(s *scoped) {
		release := s.Hold()
		a, b, c := s.take("k"), s.take("k"), s.take("k")
		release()
		s.all(a, b, c)
		s.left(7)
	})
}

func (s *scoped) left(want int64) {
	s.Helper()
	res, err := s.spy.Store.Do(s.T.Context(), []ratelimit.Op{{Rule: gcra(10), Key: "k", N: 1, Kind: ratelimit.Peek}})
	require.NoError(s, err)
	require.Equal(s, want, res[0].Remaining)
}

// Without anybody else at the key, a take shares a call with all that its scope asks for.
func TestATakeSharesItsScopesCall(t *testing.T) {
	inScope(t, func(s *scoped) {
		release := s.Hold()
		a, b := s.take("k"), s.take("another key")
		release()
		s.all(a, b)
		require.EqualValues(s, 1, s.store.calls.Load())
	})
}

// A scope's call goes when its last computation asks or ends. Others don't wait for that.
func TestNobodyWaitsForAnothersScope(t *testing.T) {
	inScope(t, func(s *scoped) {
		slow := make(chan struct{})
		ends := lazy.Go(s.Scope, func(context.Context) (int, error) { <-slow; return 0, nil })
		waits := s.take("k")
		synctest.Wait()
		require.Empty(s, s.spy.hows())
		for range 2 {
			res, err := s.c.DoOne(s.T.Context(), take(gcra(10), "k", 1))
			require.NoError(s, err)
			require.True(s, res.Allowed)
		}
		inAnother := lazy.NewScope(s.T.Context())
		_, err := s.c.DoOne(inAnother.Context(), take(gcra(10), "k", 1))
		require.NoError(s, err)
		require.NoError(s, inAnother.Close())
		s.left(7)
		close(slow)
		s.all(waits, ends)
		s.left(6)
	})
}

// A scope isn't held up by those of its computations that queue, or whose call others
// wait for.
func TestWhoQueuesHoldsUpNobodyInItsScope(t *testing.T) {
	inScope(t, func(s *scoped) {
		s.spy.hold = make(chan struct{})
		go func() { _, _ = s.c.DoOne(s.T.Context(), take(gcra(10), "k", 1)) }()
		synctest.Wait()
		queued := s.take("k")
		other := s.take("another key")
		synctest.Wait()
		require.Len(s, s.spy.hows(), 2, "the other has gone")
		close(s.spy.hold)
		s.all(queued, other)
	})
	inScope(t, func(s *scoped) {
		s.spy.hold = make(chan struct{})
		another := lazy.NewScope(s.T.Context())
		go func() { _, _ = s.c.DoOne(another.Context(), take(gcra(10), "k", 1)) }() // past the queue
		synctest.Wait()
		first := s.take("k")
		other := s.take("another key")
		synctest.Wait()
		require.Len(s, s.spy.hows(), 3, "both have gone")
		close(s.spy.hold)
		s.all(first, other)
		require.NoError(s, another.Close())
	})
}

// A panic in a call that was made apart is the caller's.
func TestAPanicApart(t *testing.T) {
	inScope(t, func(s *scoped) {
		s.spy.hold = make(chan struct{})
		another := lazy.NewScope(s.T.Context())
		go func() { _, _ = s.c.DoOne(another.Context(), take(gcra(10), "k", 1)) }()
		synctest.Wait()
		s.spy.first = func(ctx context.Context) error {
			if lazy.ScopeOf(ctx) == nil {
				panic("boom")
			}
			return nil
		}
		first := s.take("k")
		synctest.Wait()
		close(s.spy.hold)
		require.Panics(s, func() { _, _ = first.Get(s.T.Context()) })
		require.NoError(s, another.Close())
	})
}
