package reqctx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Each of twenty requests reads two slow properties. The requests do not wait for each other, Resolve waits for both
// properties at the same time, and all waits end with the request's context.
func TestTwentyRequestsOfTwoWaits(t *testing.T) {
	reg := quiet()
	a := provide(reg, "a", reqctx.Prop[int]{Resolve: takes(50*time.Millisecond, 1)})
	b := provide(reg, "b", reqctx.Prop[int]{Resolve: takes(50*time.Millisecond, 2)})
	sequential := func(c *reqctx.Host) error {
		_, err := a.Get(c)
		if err == nil {
			_, err = b.Get(c)
		}
		return err
	}
	parallel := func(c *reqctx.Host) error { return reqctx.Resolve(c, "a", "b") }
	for _, test := range []struct {
		handler       func(*reqctx.Host) error
		timeout, want time.Duration
		err           error
	}{
		{sequential, time.Second, 100 * time.Millisecond, nil},
		{sequential, 10 * time.Millisecond, 10 * time.Millisecond, context.DeadlineExceeded},
		{parallel, time.Second, 50 * time.Millisecond, nil},
		{parallel, 10 * time.Millisecond, 10 * time.Millisecond, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
			defer cancel()
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					c := reqctx.New(ctx, reg)
					assert.ErrorIs(t, test.handler(c), test.err)
					assert.NoError(t, c.Finish())
				})
			}
			wg.Wait()
			require.Equal(t, test.want, time.Since(began))
		})
	}
}

func TestResolveReturnsEveryError(t *testing.T) {
	reg := quiet()
	other := errors.New("other")
	a := provide(reg, "a", reqctx.Prop[int]{Resolve: gives(0, errBoom)})
	provide(reg, "b", reqctx.Prop[int]{Resolve: gives(1, nil)})
	provide(reg, "c", reqctx.Prop[int]{Resolve: gives(0, other)})
	c := reqctx.New(t.Context(), reg)
	err := reqctx.Resolve(c, "a", "b", "c")
	require.ErrorIs(t, err, errBoom)
	require.ErrorIs(t, err, other)
	require.EqualError(t, err, "a: boom\nc: other")
	require.Equal(t, errBoom, a.Require(c), "the property keeps its own")
	require.NoError(t, reqctx.Resolve(c))
	require.NoError(t, reqctx.Resolve(c, "b", "b"))
	require.NoError(t, c.Finish())
	require.ErrorIs(t, reqctx.Resolve(c, "a", "b"), reqctx.ErrFinished)
}

func TestResolveLeavesWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		provide(reg, "a", reqctx.Prop[int]{Resolve: stubborn(time.Second, 1)})
		provide(reg, "b", reqctx.Prop[int]{Resolve: stubborn(time.Second, 1)})
		c := request(t, reg)
		start := time.Now()
		ctx, cancel := context.WithTimeoutCause(c, time.Millisecond, errBoom)
		defer cancel()
		require.ErrorIs(t, reqctx.Resolve(ctx, "a", "b"), errBoom)
		require.Equal(t, time.Millisecond, time.Since(start))
		require.NoError(t, reqctx.Resolve(c, "a", "b"))
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestPropertyThatNeedsItself(t *testing.T) {
	var self, a, b reqctx.Key[int]
	reg := quiet()
	self = provide(reg, "self", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) { return self.Get(ctx) }})
	a = provide(reg, "a", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
		derived, cancel := context.WithCancel(ctx)
		defer cancel()
		return b.Get(derived)
	}})
	b = provide(reg, "b", reqctx.Prop[int]{Timeout: time.Hour, Resolve: func(ctx context.Context) (int, error) {
		_, err := reqctx.Get(ctx, "a")
		return 0, err
	}})
	many := provide(reg, "many", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
		return 0, reqctx.Resolve(ctx, "other", "many", "needy")
	}})
	provide(reg, "needy", reqctx.Prop[int]{Resolve: many.Get})
	provide(reg, "other", reqctx.Prop[int]{Resolve: many.Get})

	// The path begins with the wait that closed the cycle. Either of the two goroutines may have closed it.
	either := [][]string{{"a", "b", "a"}, {"b", "a", "b"}}
	for _, tc := range []struct {
		key   reqctx.Key[int]
		paths [][]string
	}{
		{self, [][]string{{"self", "self"}}},
		{a, either},
		{b, either},
		{many, nil},
	} {
		t.Run(tc.key.Name(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := request(t, reg)
				_, err := tc.key.Get(c)
				var cycle *lazy.CycleError
				require.ErrorAs(t, err, &cycle)
				if tc.paths != nil {
					require.Contains(t, tc.paths, cycle.Path)
				}
			})
		})
	}
}

func TestCancellationOfItsOwnIsNotKept(t *testing.T) {
	for name, err := range map[string]error{
		"canceled": context.Canceled,
		"deadline": fmt.Errorf("dial: %w", context.DeadlineExceeded),
		"timeout":  &reqctx.TimeoutError{Name: "inner"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := quiet()
			calls, closed := 0, 0
			k := provide(reg, "k", reqctx.Prop[int]{
				Resolve: func(context.Context) (int, error) {
					if calls++; calls == 1 {
						return 0, err
					}
					return calls, nil
				},
				Close: func(context.Context, int, error) error { closed++; return nil },
			})
			c := reqctx.New(t.Context(), reg)
			_, got := k.Get(c)
			require.ErrorIs(t, got, err)
			v, got := k.Get(c)
			require.NoError(t, got)
			require.Equal(t, 2, v)
			require.NoError(t, c.Finish())
			require.Equal(t, 2, closed, "each Resolve has its Close")
		})
	}
}

// A property is resolved on its reader's goroutine if the reader cannot leave before the request ends.
func TestResolvesOnTheReadersGoroutine(t *testing.T) {
	reg := quiet()
	inline := func(context.Context) (bool, error) { // the stack of the test's goroutine contains tRunner
		return bytes.Contains(debug.Stack(), []byte("testing.tRunner(")), nil
	}
	k := provide(reg, "k", reqctx.Prop[bool]{Resolve: inline})
	bounded := provide(reg, "bounded", reqctx.Prop[bool]{Resolve: inline, Timeout: time.Minute})
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := requestOf(t, parent, reg)
	leaves, cancel := context.WithTimeout(c, time.Minute)
	defer cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		key  reqctx.Key[bool]
		want bool
	}{
		"the request":                     {c, k, true},
		"derived from the request":        {context.WithValue(c, t, t), k, true},
		"may leave":                       {leaves, k, false},
		"never leaves":                    {context.WithoutCancel(leaves), k, true},
		"never leaves, but has a timeout": {context.WithoutCancel(c), bounded, false},
	} {
		require.NoError(t, tc.key.Invalidate(c))
		got, err := tc.key.Get(tc.ctx)
		require.NoError(t, err)
		require.Equal(t, tc.want, got, name)
	}
}

func TestCancellationOfTheRequestIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		k := provide(reg, "k", reqctx.Prop[int]{Resolve: takes(time.Minute, 1)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := requestOf(t, ctx, reg)
		require.ErrorIs(t, k.Require(c), context.DeadlineExceeded)
		_, err, ok := k.Peek(c)
		require.True(t, ok)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
