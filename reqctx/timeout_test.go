package reqctx_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		var calls atomic.Int32
		k := provide(reg, "slow", reqctx.Prop[string]{
			Timeout: 100 * time.Millisecond,
			Resolve: func(context.Context) (string, error) {
				if calls.Add(1) == 1 {
					return stubborn(time.Second, "late")(nil)
				}
				return "second", nil
			},
			Close: func(_ context.Context, v string, err error) error {
				require.NoError(t, err)
				j.add(v)
				return nil
			},
		})
		c := reqctx.New(t.Context(), reg)
		start := time.Now()
		derived, cancel := context.WithCancel(c)
		defer cancel()
		var wg sync.WaitGroup
		for _, ctx := range []context.Context{c, derived} {
			wg.Go(func() {
				_, err := k.Get(ctx)
				var timeout *reqctx.TimeoutError
				assert.ErrorAs(t, err, &timeout)
				assert.Equal(t, reqctx.TimeoutError{Name: "slow", After: 100 * time.Millisecond}, *timeout)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.EqualError(t, err, `reqctx: property "slow" took longer than 100ms`)
				status, _ := timeout.Problem()
				assert.Equal(t, 503, status)
			})
		}
		wg.Wait()
		require.Equal(t, 100*time.Millisecond, time.Since(start))
		_, _, ok := k.Peek(c)
		require.False(t, ok, "a timeout is not kept")

		requireGet(t, c, k, "second")
		<-time.After(2 * time.Second)
		requireGet(t, c, k, "second")
		require.EqualValues(t, 2, calls.Load())
		require.NoError(t, c.Finish())
		require.Equal(t, []string{"late", "second"}, j.all(), "but it is closed")
	})
}

// Resolve returns at the moment of the timeout. Readers get either its value, which is then kept, or the timeout error,
// which is not kept.
func TestResolveEndsAtTheTimeout(t *testing.T) {
	for _, fails := range []bool{false, true} {
		reg := quiet()
		k := provide(reg, "k", reqctx.Prop[int]{Timeout: time.Millisecond, Resolve: func(ctx context.Context) (int, error) {
			noticed := make(chan struct{})
			context.AfterFunc(ctx, func() { close(noticed) })
			<-noticed
			if fails {
				return 0, ctx.Err()
			}
			return 1, nil
		}})
		synctest.Test(t, func(t *testing.T) {
			for range 300 {
				c := reqctx.New(t.Context(), reg)
				err := k.Require(c)
				if err != nil || fails {
					require.ErrorAs(t, err, new(*reqctx.TimeoutError))
				}
				_, _, kept := k.Peek(c)
				require.Equal(t, err == nil, kept, err)
				require.NoError(t, c.Finish())
			}
		})
	}
}

func TestTimeoutNotReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var given context.Context
		k := provide(reg, "k", reqctx.Prop[int]{Timeout: time.Second, Resolve: func(ctx context.Context) (int, error) {
			given = ctx
			return takes(999*time.Millisecond, 1)(ctx)
		}})
		own := provide(reg, "own", reqctx.Prop[int]{Timeout: time.Second, Resolve: gives(0, errBoom)})
		c := request(t, reg)
		requireGet(t, c, k, 1)
		require.ErrorIs(t, given.Err(), context.Canceled, "the timer does not live on")
		require.Equal(t, errBoom, own.Require(c))
		<-time.After(time.Minute)
		requireGet(t, c, k, 1)
	})
}

func TestInnerTimeoutIsTheErrorOfTheOuterProperty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		inner := provide(reg, "inner", reqctx.Prop[int]{Timeout: time.Second, Resolve: takes(time.Minute, 1)})
		outer := provide(reg, "outer", reqctx.Prop[int]{Timeout: time.Hour, Resolve: inner.Get})
		c := request(t, reg)
		_, err := outer.Get(c)
		var timeout *reqctx.TimeoutError
		require.ErrorAs(t, err, &timeout)
		require.Equal(t, "inner", timeout.Name)
		_, _, ok := outer.Peek(c)
		require.False(t, ok, "not kept by the outer one either")
	})
}

func TestLatePanicIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, log := logged()
		k := provide(reg, "late", reqctx.Prop[int]{Timeout: time.Millisecond, Resolve: func(context.Context) (int, error) {
			<-time.After(time.Second)
			panic(errBoom)
		}})
		c := reqctx.New(t.Context(), reg)
		require.ErrorIs(t, k.Require(c), context.DeadlineExceeded)
		require.ErrorIs(t, c.Finish(), errBoom)
		require.Contains(t, log.String(), "late panicked: boom")
	})
}
