package layer

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
)

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
