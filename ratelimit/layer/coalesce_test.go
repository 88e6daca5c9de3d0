package layer

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

// queueing is a Coalesce over a spy in a bubble.
type queueing struct {
	*testing.T
	*spy
	*Coalesce
	rule ratelimit.Rule
}

// answer is what a take came to.
type answer struct {
	res      ratelimit.Result
	err      error
	panicked any
	returned bool
}

// inBubbles runs test twice: on a store that takes many, and on one that doesn't.
func inBubbles(t *testing.T, limit int64, o CoalesceOptions, test func(q *queueing, many bool)) {
	t.Run("TakeMany", func(t *testing.T) { inBubble(t, true, limit, o, test) })
	t.Run("Do", func(t *testing.T) { inBubble(t, false, limit, o, test) })
}

func inBubble(t *testing.T, many bool, limit int64, o CoalesceOptions, test func(q *queueing, many bool)) {
	synctest.Test(t, func(t *testing.T) {
		memory, _ := newMemory(t)
		q := &queueing{T: t, spy: &spy{Store: memory, hold: make(chan struct{})}, rule: gcra(limit)}
		var inner ratelimit.Store = q.spy
		if many {
			inner = spyOfMany{q.spy}
		}
		var err error
		q.Coalesce, err = NewCoalesce(inner, o)
		require.NoError(t, err)
		test(q, many)
		synctest.Wait()
		q.empty()
	})
}

// take takes on a goroutine of its own, and returns when it waits.
func (q *queueing) take(ctx context.Context, n int64) *answer {
	return q.ask(ctx, take(q.rule, "k", n))
}

func (q *queueing) ask(ctx context.Context, op ratelimit.Op) *answer {
	a := new(answer)
	go func() {
		defer func() { a.panicked = recover() }()
		a.res, a.err = q.Coalesce.DoOne(ctx, op)
		a.returned = true
	}()
	synctest.Wait()
	return a
}

// answered lets the call that is under way go on.
func (q *queueing) answered() {
	q.Helper()
	select {
	case q.hold <- struct{}{}:
	default:
		require.Fail(q, "no call is under way")
	}
	synctest.Wait()
}

// empty says that no lane is left.
func (q *queueing) empty() {
	q.Helper()
	for i := range q.lanes {
		require.Nil(q, q.lanes[i].first)
	}
}

func (q *queueing) left(want int64, answers ...*answer) {
	q.Helper()
	for _, a := range answers {
		require.True(q, a.returned)
		require.NoError(q, a.err)
		require.True(q, a.res.Allowed)
		require.Equal(q, want, a.res.Remaining)
		want--
	}
}

func TestCoalesceConforms(t *testing.T) {
	for _, many := range []bool{true, false} {
		storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
			memory, clock := newMemory(t)
			var inner ratelimit.Store = memory
			if many {
				inner = spyOfMany{&spy{Store: memory}}
			}
			c, err := NewCoalesce(inner, CoalesceOptions{})
			require.NoError(t, err)
			return c, clock
		}, storetest.Everything)
	}
}

func TestTakesOfAKeyShareACall(t *testing.T) {
	inBubbles(t, 6, CoalesceOptions{}, func(q *queueing, many bool) {
		ctx := q.Context()
		a := []*answer{q.take(ctx, 1)}
		require.Equal(q, []string{"DoOne"}, q.hows(), "the first doesn't wait")
		for range 7 {
			a = append(a, q.take(ctx, 1))
		}
		require.Empty(q, q.hows(), "the others do")
		other := q.ask(ctx, take(q.rule, "another key", 1))
		tier := q.ask(ctx, take(gcra(5), "k", 1))
		require.Equal(q, []string{"DoOne", "DoOne"}, q.hows())
		for range 3 {
			q.answered()
		}
		require.Equal(q, []string{map[bool]string{true: "TakeMany", false: "Do"}[many]}, q.hows())
		q.answered()
		require.Empty(q, q.hows())
		require.True(q, other.res.Allowed)
		require.True(q, tier.res.Allowed)
		q.left(5, a[0])
		q.left(3, a[1:5]...) // the tier has taken one of the six
		for _, denied := range a[5:] {
			require.NoError(q, denied.err)
			require.False(q, denied.res.Allowed)
			require.True(q, denied.res.Violated)
			require.Equal(q, a[5].res.RetryAfter, denied.res.RetryAfter)
			require.Positive(q, denied.res.RetryAfter)
		}
	})
}

// Whoever doesn't fit takes nothing, and those behind may still fit.
func TestEachTakeIsDecidedByItselfInTheOrderOfArrival(t *testing.T) {
	inBubbles(t, 10, CoalesceOptions{}, func(q *queueing, many bool) {
		ctx := q.Context()
		q.take(ctx, 1)
		a := []*answer{q.take(ctx, 5), q.take(ctx, 5), q.take(ctx, 3), q.take(ctx, 2), q.take(ctx, 1)}
		q.answered()
		require.Equal(q, []string{"DoOne", "Do"}, q.hows(), "one call of few takes")
		q.answered()
		for i, want := range []struct {
			allowed bool
			left    int64
		}{{true, 4}, {false, 4}, {true, 1}, {false, 1}, {true, 0}} {
			require.NoError(q, a[i].err)
			require.Equal(q, want.allowed, a[i].res.Allowed, i)
			require.Equal(q, want.left, a[i].res.Remaining, i)
		}
	})
}

func TestLongRunsOfEqualTakesAreACallEach(t *testing.T) {
	inBubbles(t, 1000, CoalesceOptions{}, func(q *queueing, many bool) {
		var a []*answer
		q.take(q.Context(), 1)
		for i := range int64(3 * worthACall) {
			a = append(a, q.take(q.Context(), 1+i/worthACall))
		}
		q.answered()
		if !many {
			q.answered()
			require.Equal(q, []string{"DoOne", "Do"}, q.hows())
		} else {
			for range 3 {
				q.answered()
			}
			require.Equal(q, []string{"DoOne", "TakeMany", "TakeMany", "TakeMany"}, q.hows())
		}
		left := int64(999)
		for i, a := range a {
			require.NoError(q, a.err)
			left -= 1 + int64(i)/worthACall
			require.Equal(q, left, a.res.Remaining)
		}
	})
}

func TestWhoLeavesTheQueueIsNotCharged(t *testing.T) {
	inBubbles(t, 10, CoalesceOptions{}, func(q *queueing, _ bool) {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(q.Context())
		q.take(q.Context(), 1)
		stays := q.take(q.Context(), 2)
		leaves := q.take(ctx, 3)
		last := q.take(q.Context(), 1)
		cancel(gone)
		synctest.Wait()
		require.ErrorIs(q, leaves.err, gone, "at once")
		q.answered()
		q.answered()
		require.EqualValues(q, 7, stays.res.Remaining)
		require.EqualValues(q, 6, last.res.Remaining)
		require.EqualValues(q, 6, q.remaining())
	})
}

func (q *queueing) remaining() int64 {
	res, err := q.Store.Do(context.Background(), []ratelimit.Op{{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Peek}})
	require.NoError(q, err)
	return res[0].Remaining
}

func TestAQueueThatAllHaveLeftIsNoCall(t *testing.T) {
	inBubbles(t, 10, CoalesceOptions{MaxQueue: 2}, func(q *queueing, _ bool) {
		q.take(q.Context(), 1)
		for range 3 { // and takes no room
			ctx, cancel := context.WithCancel(q.Context())
			a, b := q.take(ctx, 1), q.take(ctx, 1)
			cancel()
			synctest.Wait()
			require.ErrorIs(q, a.err, context.Canceled)
			require.ErrorIs(q, b.err, context.Canceled)
		}
		q.answered()
		require.Equal(q, []string{"DoOne"}, q.hows())
		require.EqualValues(q, 9, q.remaining())
	})
}

type valueKey struct{}

// A call of several goes on when they leave, and has nobody's values.
func TestACallBelongsToAllInIt(t *testing.T) {
	inBubbles(t, 10, CoalesceOptions{}, func(q *queueing, _ bool) {
		first, cancelFirst := context.WithCancel(context.WithValue(q.Context(), valueKey{}, "first's"))
		second, cancelSecond := context.WithCancel(q.Context())
		q.take(q.Context(), 1)
		a, b := q.take(first, 1), q.take(second, 1)
		q.answered()
		q.mu.Lock()
		call := q.calls[1].ctx
		q.mu.Unlock()
		require.Nil(q, call.Value(valueKey{}))
		cancelFirst()
		synctest.Wait()
		require.ErrorIs(q, a.err, context.Canceled, "it leaves at once")
		queued := q.take(q.Context(), 1)
		cancelSecond()
		synctest.Wait()
		require.ErrorIs(q, b.err, context.Canceled)
		require.NoError(q, call.Err())
		q.answered()
		q.answered()
		q.left(6, queued)
	})
}

func TestAnErrorOfTheStoreIsEverybodys(t *testing.T) {
	inBubbles(t, 10, CoalesceOptions{}, func(q *queueing, _ bool) {
		broken := errors.New("broken")
		q.take(q.Context(), 1)
		a, b := q.take(q.Context(), 1), q.take(q.Context(), 1)
		q.answered()
		q.spy.first = func(context.Context) error { return broken }
		c := q.take(q.Context(), 1)
		q.answered()
		require.ErrorIs(q, a.err, broken)
		require.ErrorIs(q, b.err, broken)
		q.spy.first = nil
		q.answered()
		q.left(8, c)
	})
}

func TestAPanicOfTheStoreIsEverybodys(t *testing.T) {
	inBubbles(t, 10, CoalesceOptions{}, func(q *queueing, _ bool) {
		panics := func(context.Context) error { panic("boom") }
		q.spy.first = panics
		alone := q.take(q.Context(), 1)
		a, b := q.take(q.Context(), 1), q.take(q.Context(), 1)
		q.answered()
		require.Equal(q, "boom", alone.panicked)
		c := q.take(q.Context(), 1)
		q.answered()
		for _, a := range []*answer{a, b} {
			require.IsType(q, &lazy.PanicError{}, a.panicked)
			require.Contains(q, a.panicked.(error).Error(), "layer: coalesced takes of gcra(10 per 1m0s) panicked: boom")
		}
		q.spy.first = nil
		q.answered()
		q.left(9, c)
	})
}

func TestAStoreThatEndsTheGoroutine(t *testing.T) {
	inBubbles(t, 10, CoalesceOptions{}, func(q *queueing, _ bool) {
		q.spy.first = func(context.Context) error { runtime.Goexit(); return nil }
		q.take(q.Context(), 1)
		a, b := q.take(q.Context(), 1), q.take(q.Context(), 1)
		q.answered()
		c := q.take(q.Context(), 1)
		q.answered()
		require.ErrorIs(q, a.err, lazy.ErrGoexit)
		require.ErrorIs(q, b.err, lazy.ErrGoexit)
		q.spy.first = nil
		q.answered()
		q.left(9, c)
	})
}

func TestAFullQueue(t *testing.T) {
	inBubbles(t, 10, CoalesceOptions{MaxQueue: 2}, func(q *queueing, _ bool) {
		q.take(q.Context(), 1)
		a, b := q.take(q.Context(), 1), q.take(q.Context(), 1)
		full := q.take(q.Context(), 1)
		require.ErrorIs(q, full.err, ErrQueueFull)
		require.ErrorIs(q, full.err, ratelimit.ErrStore)
		q.answered()
		c := q.take(q.Context(), 1)
		q.answered()
		q.answered()
		q.left(8, a, b, c)
	})
}

// What isn't a take by itself, or is none at all, neither waits nor is waited for.
func TestOnlyTakesQueue(t *testing.T) {
	inBubbles(t, 10, CoalesceOptions{}, func(q *queueing, _ bool) {
		q.take(q.Context(), 1)
		waits := q.take(q.Context(), 1)
		q.hows()
		ops := []ratelimit.Op{
			{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Peek},
			{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Add},
			{Rule: q.rule, Key: "k", Kind: ratelimit.Refund},
			{Rule: q.rule, Key: "k", Kind: ratelimit.Reset},
			{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Take, Receipt: ratelimit.Receipt{N: 1}},
		}
		for _, op := range ops {
			q.ask(q.Context(), op)
			require.Equal(q, []string{"DoOne"}, q.hows(), op.Kind)
		}
		go func() { _, _ = q.Coalesce.Do(q.Context(), []ratelimit.Op{take(q.rule, "k", 1), take(gcra(3), "k", 1)}) }()
		synctest.Wait()
		require.Equal(q, []string{"Do"}, q.hows())
		apart := take(q.rule, "k", 1)
		apart.Apart = true
		require.ErrorIs(q, q.ask(q.Context(), take(q.rule, "k", 11)).err, ratelimit.ErrTooLarge)
		q.ask(q.Context(), apart)
		require.Empty(q, q.hows(), "Apart means nothing for one")
		close(q.hold)
		synctest.Wait()
		require.NoError(q, waits.err)
	})
}

func TestNewCoalesceRefuses(t *testing.T) {
	memory, _ := newMemory(t)
	_, err := NewCoalesce(nil, CoalesceOptions{})
	require.ErrorContains(t, err, "store is nil")
	_, err = NewCoalesce(memory, CoalesceOptions{MaxQueue: -1})
	require.ErrorContains(t, err, "CoalesceOptions.MaxQueue is -1")
	c, err := NewCoalesce(memory, CoalesceOptions{})
	require.NoError(t, err)
	_, err = NewCoalesce(c, CoalesceOptions{})
	require.ErrorIs(t, err, ErrOrder)
}

func TestATakeThatDoesNotQueueAllocatesNothing(t *testing.T) {
	memory, _ := newMemory(t)
	c, err := NewCoalesce(memory, CoalesceOptions{})
	require.NoError(t, err)
	op := take(gcra(1<<20), "k", 1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if res, err := c.DoOne(t.Context(), op); err != nil || !res.Allowed {
			t.Error(res, err)
		}
	}))
}
