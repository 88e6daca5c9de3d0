package lazy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// These look inside: what they show cannot be brought about from outside at
// will.

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

// wait begins to wait for f on behalf of caller, and returns where the end of it
// will be told.
func wait(ctx context.Context, f, caller *Flight) <-chan error {
	end := make(chan error, 1)
	go func() { end <- f.Wait(ctx, caller) }()
	synctest.Wait()
	return end
}

func TestRule2AHitTakesNoLock(t *testing.T) {
	v := New(func(context.Context) (int, error) { return 1, nil })
	v.Set(1)
	v.mu.Lock()
	defer v.mu.Unlock()
	got, err := v.Get(t.Context()) // would block for ever
	require.NoError(t, err)
	require.Equal(t, 1, got)
	v.Start(t.Context())
	_, _, ok := v.Peek()
	require.True(t, ok)
}

// At any time at most one computation is attached; what is abandoned is detached
// before it is cancelled.
func TestRule3AnAbandonedComputationIsDetachedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v *Value[int]
		attached := make(chan bool, 1)
		v = New(func(ctx context.Context) (int, error) {
			<-ctx.Done()
			v.mu.Lock()
			defer v.mu.Unlock()
			attached <- v.at != nil
			return 0, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		v.Start(ctx)
		synctest.Wait()
		cancel()
		require.False(t, <-attached)
	})
}

func TestFlightWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlight("f")
		ctx, cancel := context.WithCancelCause(t.Context())
		leaves, stays := wait(ctx, f, nil), wait(t.Context(), f, newFlight("caller"))
		cancel(ErrClosed)
		require.ErrorIs(t, <-leaves, ErrClosed)
		require.Empty(t, stays)
		f.Release()
		f.Release()
		require.NoError(t, <-stays)
		require.NoError(t, f.Wait(ctx, nil), "nothing to wait for, so the context does not matter")
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

// A need is there as long as one of its waits is.
func TestNeedsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, caller := newFlight("f"), newFlight("caller")
		ctx, cancel := context.WithCancel(t.Context())
		one, two := wait(ctx, f, caller), wait(t.Context(), f, caller)
		require.Len(t, caller.needs, 2)
		cancel()
		require.ErrorIs(t, <-one, context.Canceled)
		require.Len(t, caller.needs, 1)
		require.EqualError(t, caller.Wait(t.Context(), f), "lazy: cycle: caller -> f -> caller")
		f.Release()
		require.NoError(t, <-two)
		require.Empty(t, caller.needs)
		require.Empty(t, f.needs, "a wait that closes a cycle is taken back")
	})
}

// A flight that was released by a Set, while its work goes on, holds up nobody
// who waited for it, even before they took back their needs; but it does hold up
// the one on whose goroutine it runs.
func TestAReleasedFlightInACycle(t *testing.T) {
	for _, inline := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			check := func(end <-chan error, b *Flight) {
				if inline {
					require.IsType(t, &CycleError{}, <-end)
					return
				}
				require.Empty(t, end, "it may wait for b")
				b.Release()
				require.NoError(t, <-end)
			}
			// b needs a, a needs b.
			a, b := newFlight("a"), newFlight("b")
			b.add(need{a, inline})
			a.Release()
			check(wait(t.Context(), b, a), b)

			// b needs a, a needs c, c needs b.
			a, b, c := newFlight("a"), newFlight("b"), newFlight("c")
			b.add(need{a, inline})
			a.add(need{c, false})
			a.Release()
			check(wait(t.Context(), b, c), b)
		})
	}
}

// Of two waits that close a cycle together, at least one finds it.
func TestTwoWaitsThatCloseACycleTogether(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 5000 {
		a, b := newFlight("a"), newFlight("b")
		ends := make(chan error, 2)
		for _, pair := range [][2]*Flight{{a, b}, {b, a}} {
			go func() {
				err := pair[0].Wait(ctx, pair[1])
				pair[1].Release() // its computation ends with the error
				ends <- err
			}()
		}
		one, two := <-ends, <-ends
		var cycle *CycleError
		require.ErrorAs(t, errors.Join(one, two), &cycle)
		require.Empty(t, append(a.needs, b.needs...))
	}
}

// While a flight runs inline its caller needs it, and no longer.
func TestRunIsANeed(t *testing.T) {
	f, caller := newFlight("f"), newFlight("caller")
	f.work = probe(func() { require.Equal(t, []need{{f, true}}, caller.needs) })
	f.Run(caller)
	require.Empty(t, caller.needs)
}

// probe is a Work that calls a function.
type probe func()

func (p probe) Name() string            { return "probe" }
func (p probe) Compute(context.Context) { p() }
func (p probe) Finish(error)            {}

// A dense graph is searched once, not once for each of its paths.
func TestTheSearchForACycleIsLinear(t *testing.T) {
	flights := make([]*Flight, 200)
	for i := range flights {
		flights[i] = newFlight("f")
		for _, g := range flights[:i] {
			flights[i].add(need{g, false})
		}
	}
	require.Nil(t, flights[len(flights)-1].pathTo(newFlight("other"), nil))
}
