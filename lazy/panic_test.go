package lazy_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
)

// blowUp panics with v. Tests look for its name in stacks.
func blowUp(v any) { panic(v) }

func TestRule6PanicReachesEveryWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		fn := func(ctx context.Context) (int, error) {
			_ = pause(ctx, time.Second)
			blowUp(errBoom)
			return 0, nil
		}
		for name, v := range map[string]*lazy.Value[int]{"stand-alone": lazy.New(fn), "of a scope": lazy.In(s, fn)} {
			for _, first := range []context.Context{context.Background(), t.Context(), s.Context()} {
				v.Reset()
				panics := make(chan any, 4)
				for _, ctx := range []context.Context{first, context.Background(), t.Context(), s.Context()} {
					go func() {
						_, _, p := get(ctx, v)
						panics <- p
					}()
					synctest.Wait() // now the first goroutine computes the value
				}
				p, ok := (<-panics).(*lazy.PanicError)
				require.True(t, ok, name)
				for range cap(panics) - 1 {
					require.Same(t, p, <-panics, name)
				}
				require.Equal(t, error(errBoom), p.Value)
				require.ErrorIs(t, p, errBoom)
				require.Contains(t, string(p.Stack), "blowUp", "the stack is the function's")
				require.Contains(t, p.Name, "TestRule6PanicReachesEveryWaiter")
				require.Contains(t, p.Error(), "panicked: boom\n")
				require.Contains(t, p.Error(), "blowUp")
			}
		}
		require.NoError(t, s.Close(), "every panic was raised")
	})
}

func TestPanicsOfOtherKinds(t *testing.T) {
	for _, value := range []any{"text", []int{1}, errBoom, brokenError{}} { // a slice is not comparable
		for _, ctx := range []context.Context{context.Background(), t.Context()} {
			_, _, p := get(ctx, lazy.New(func(context.Context) (int, error) { panic(value) }))
			require.IsType(t, (*lazy.PanicError)(nil), p)
			require.Equal(t, value, p.(*lazy.PanicError).Value)
		}
	}
	_, _, p := get(t.Context(), lazy.New(func(context.Context) (int, error) { panic(nil) })) // panic(nil) is intended
	require.ErrorAs(t, p.(error), new(*runtime.PanicNilError))
}

func TestRule6PanicIsForgottenByAStandAloneValueAndKeptByAScopes(t *testing.T) {
	s := newScope(t)
	runs := 0
	fn := func(context.Context) (int, error) {
		if runs++; runs == 1 {
			panic(errBoom)
		}
		return runs, nil
	}
	v := lazy.New(fn)
	_, _, first := get(t.Context(), v)
	require.NotNil(t, first)
	_, _, ok := v.Peek()
	require.False(t, ok)
	requireGet(t, t.Context(), v, 2)

	runs = 0
	v = lazy.In(s, fn)
	_, _, first = get(s.Context(), v)
	require.NotNil(t, first)
	_, _, second := get(t.Context(), v)
	require.Same(t, first, second)
	require.Same(t, first, catch(func() { _ = lazy.All(t.Context(), v) }))
	require.Equal(t, 1, runs)
	got, err, kept := v.Peek()
	require.True(t, kept, "Peek returns what Get would panic with")
	require.Equal(t, first, err)
	require.Zero(t, got)
	v.Set(9)
	requireGet(t, t.Context(), v, 9)
	v.Reset()
	requireGet(t, t.Context(), v, 2)
}

func TestRule6ErrAbortHandlerPassesUnwrapped(t *testing.T) {
	s := newScope(t)
	abort := func(context.Context) (int, error) { panic(http.ErrAbortHandler) }
	outer := func(v *lazy.Value[int]) *lazy.Value[int] {
		return lazy.In(s, func(ctx context.Context) (int, error) { return v.Get(ctx) })
	}
	for name, fn := range map[string]func(){
		"inline":                     func() { _ = lazy.New(abort).Wait(context.Background()) },
		"on a goroutine":             func() { _ = lazy.New(abort).Wait(t.Context()) },
		"of a scope, inline":         func() { _ = lazy.In(s, abort).Wait(s.Context()) },
		"of a scope, on a goroutine": func() { _ = lazy.In(s, abort).Wait(t.Context()) },
		"nested, inline":             func() { _ = outer(lazy.In(s, abort)).Wait(s.Context()) },
		"nested, on goroutines":      func() { _ = outer(lazy.New(abort)).Wait(t.Context()) },
		"All":                        func() { _ = lazy.All(t.Context(), lazy.New(abort)) },
		"All, of a scope":            func() { _ = lazy.All(t.Context(), lazy.In(s, abort)) },
		"kept": func() {
			v := lazy.In(s, abort)
			_, _, _ = get(t.Context(), v)
			_, err, ok := v.Peek()
			require.True(t, ok)
			require.ErrorIs(t, err, http.ErrAbortHandler)
			_ = v.Wait(t.Context())
		},
	} {
		require.True(t, catch(fn) == any(http.ErrAbortHandler), name) // errors.Is is not enough
	}
}

// A panic that passes through outer values keeps the inner value's name and stack.
func TestRule6NestedPanicKeepsTheInnerNameAndStack(t *testing.T) {
	s := newScope(t)
	for name, ctx := range map[string]context.Context{"inline": s.Context(), "on goroutines": t.Context()} {
		inner := lazy.New(innermost)
		middle := lazy.In(s, func(ctx context.Context) (int, error) { return inner.Get(ctx) })
		outer := lazy.In(s, func(ctx context.Context) (int, error) { return 0, lazy.All(ctx, middle) })
		_, _, p := get(ctx, outer)
		require.IsType(t, (*lazy.PanicError)(nil), p, name)
		err := p.(*lazy.PanicError)
		require.True(t, strings.HasSuffix(err.Name, ".innermost"), err.Name)
		require.Equal(t, "deep", err.Value)
		require.Contains(t, string(err.Stack), "lazy_test.innermost")
		require.NoError(t, errors.Unwrap(err))
	}
}

func innermost(context.Context) (int, error) { panic("deep") }

func TestRule6GoexitIsAnErrorForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lazy.NewScope(apart(t))
		shorter, cancel := context.WithCancel(t.Context())
		defer cancel()
		for name, first := range map[string]context.Context{
			"stand-alone, inline":         context.Background(),
			"stand-alone, on a goroutine": t.Context(),
			"of a scope, inline":          s.Context(),
			"of a scope, on a goroutine":  shorter,
		} {
			var runs atomic.Int32
			fn := func(ctx context.Context) (int32, error) {
				_ = pause(ctx, time.Second)
				if runs.Add(1) == 1 {
					runtime.Goexit()
				}
				return runs.Load(), nil
			}
			v := lazy.New(fn)
			if strings.HasPrefix(name, "of a scope") {
				v = lazy.In(s, fn)
			}
			returned, ended := make(chan error, 1), make(chan bool)
			go func() {
				defer close(ended)
				returned <- v.Wait(first)
			}()
			synctest.Wait()
			require.ErrorIs(t, v.Wait(t.Context()), lazy.ErrGoexit, name)
			<-ended
			if strings.HasSuffix(name, "inline") {
				require.Empty(t, returned, "the goroutine that it ran on has ended")
			} else {
				require.ErrorIs(t, <-returned, lazy.ErrGoexit, name)
			}
			got, err := v.Get(t.Context())
			if strings.HasPrefix(name, "of a scope") {
				require.ErrorIs(t, err, lazy.ErrGoexit, "kept like any error")
			} else {
				require.NoError(t, err)
				require.EqualValues(t, 2, got)
			}
		}
		require.NoError(t, s.Close(), "what ran inline is no longer counted")
	})
}

func TestRule6GoexitThroughAll(t *testing.T) {
	exit := func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }
	require.ErrorIs(t, lazy.All(t.Context(), lazy.New(exit)), lazy.ErrGoexit)
	s := newScope(t)
	require.ErrorIs(t, lazy.All(t.Context(), lazy.In(s, exit)), lazy.ErrGoexit)
}

// If a function that runs inline ends its goroutine, this also ends the functions that called it. Their waiters get
// ErrGoexit, too.
func TestGoexitOfANestedValue(t *testing.T) {
	s := newScope(t)
	inner := lazy.In(s, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	outer := lazy.In(s, func(ctx context.Context) (int, error) { return inner.Get(ctx) })
	require.ErrorIs(t, outer.Wait(t.Context()), lazy.ErrGoexit)
	require.ErrorIs(t, inner.Wait(t.Context()), lazy.ErrGoexit)
}
