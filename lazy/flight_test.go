package lazy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests in this file use internals, because the exported functions cannot reliably produce these states.

// work is a Work that does nothing.
type work string

func (w work) Name() string            { return string(w) }
func (w work) Compute(context.Context) {}
func (w work) Finish(error)            {}

func newFlight(name string) *Flight {
	f := new(Flight)
	f.Init(context.Background(), nil, work(name))
	return f
}

// wait begins to wait for f on behalf of caller, and returns a channel for the error.
func wait(ctx context.Context, f, caller *Flight) <-chan error {
	end := make(chan error, 1)
	go func() { end <- joinAndWait(ctx, f, caller) }()
	synctest.Wait()
	return end
}

func joinAndWait(ctx context.Context, f, caller *Flight) error {
	f.join()
	_, err := f.Wait(ctx, caller)
	return err
}

func TestRule2HitTakesNoLock(t *testing.T) {
	v := New(func(context.Context) (int, error) { return 1, nil })
	v.Set(1)
	v.mu.Lock()
	defer v.mu.Unlock()
	got, err := v.Get(t.Context()) // would block for ever
	require.NoError(t, err)
	require.Equal(t, 1, got)
	_, _, ok := v.Peek()
	require.True(t, ok)
}

func TestFlightWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlight("f")
		ctx, cancel := context.WithCancelCause(t.Context())
		leaves, stays := wait(ctx, f, nil), wait(t.Context(), f, newFlight("caller"))
		cancel(ErrClosed)
		require.ErrorIs(t, <-leaves, ErrClosed)
		require.Empty(t, stays)
		require.True(t, f.Complete("one"), "a waiter is left")
		require.False(t, f.Complete("two"))
		require.NoError(t, <-stays)
		f.join()
		out, err := f.Wait(ctx, nil)
		require.NoError(t, err, "nothing to wait for, so the context does not matter")
		require.Equal(t, "one", out)
		require.False(t, newFlight("without waiters").Complete(1))
	})
}

func TestFlightIsFoundByItsContext(t *testing.T) {
	type key struct{}
	outer, inner := newFlight("outer"), new(Flight)
	inner.Init(context.WithValue(outer, key{}, 1), nil, work("inner"))
	require.Nil(t, Current(t.Context()))
	require.Same(t, outer, Current(context.WithValue(outer, key{}, 2)))
	ctx, cancel := context.WithCancel(inner)
	defer cancel()
	require.Same(t, inner, Current(ctx))
	require.Equal(t, 1, ctx.Value(key{}))
	require.Equal(t, work("inner"), inner.Work())
}

// A flight that waits for another flight twice has two edges.
func TestEdgesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, caller := newFlight("f"), newFlight("caller")
		ctx, cancel := context.WithCancel(t.Context())
		one, two := wait(ctx, f, caller), wait(t.Context(), f, caller)
		require.Len(t, caller.edges, 2)
		cancel()
		require.ErrorIs(t, <-one, context.Canceled)
		require.Len(t, caller.edges, 1)
		require.EqualError(t, joinAndWait(t.Context(), caller, f), "lazy: cycle: caller -> f -> caller")
		f.Complete(nil)
		require.NoError(t, <-two)
		require.Empty(t, caller.edges)
		require.Empty(t, f.edges, "a wait that closes a cycle is removed")
	})
}

// After a Set has completed a flight whose work goes on, the flight does not block its waiters, even before they
// remove their edges. It still blocks the flight on whose goroutine it runs.
func TestCompleteFlightInACycle(t *testing.T) {
	for _, inline := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			check := func(end <-chan error, b *Flight) {
				if inline {
					require.IsType(t, &CycleError{}, <-end)
					return
				}
				require.Empty(t, end, "it may wait for b")
				b.Complete(nil)
				require.NoError(t, <-end)
			}
			// b waits for a, and a waits for b.
			a, b := newFlight("a"), newFlight("b")
			b.addEdge(waitEdge{a, inline})
			a.Complete(nil)
			check(wait(t.Context(), b, a), b)

			// b waits for a, a waits for c, and c waits for b.
			a, b, c := newFlight("a"), newFlight("b"), newFlight("c")
			b.addEdge(waitEdge{a, inline})
			a.addEdge(waitEdge{c, false})
			a.Complete(nil)
			check(wait(t.Context(), b, c), b)
		})
	}
}

// If two waits close a cycle together, at least one of them returns a CycleError.
func TestTwoWaitsThatCloseACycleTogether(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 5000 {
		a, b := newFlight("a"), newFlight("b")
		ends := make(chan error, 2)
		for _, pair := range [][2]*Flight{{a, b}, {b, a}} {
			go func() {
				err := joinAndWait(ctx, pair[0], pair[1])
				pair[1].Complete(nil) // its computation ends with the error
				ends <- err
			}()
		}
		one, two := <-ends, <-ends
		var cycle *CycleError
		require.ErrorAs(t, errors.Join(one, two), &cycle)
		require.Empty(t, append(a.edges, b.edges...))
	}
}

// A waiter that finds the flight incomplete may get its channel only after Complete.
func TestChannelMadeAfterCompleteIsClosed(t *testing.T) {
	f := newFlight("f")
	f.Complete(nil)
	select {
	case <-f.doneChan():
	default:
		t.Fatal("the waiter would block for ever")
	}
}
