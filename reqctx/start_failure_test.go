package reqctx_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestFinishCancelsAndAwaitsStartedProperties(t *testing.T) {
	for name, tt := range map[string]struct {
		resolve func(context.Context) (int, error)
		waits   time.Duration
	}{
		"heeds its context":   {takes(time.Minute, 1), 0},
		"ignores its context": {stubborn(time.Minute, 1), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, log := logged()
				var cause error
				slow := provide(reg, "slow", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
					defer func() { cause = context.Cause(ctx) }()
					return tt.resolve(ctx)
				}})
				c := reqctx.New(t.Context(), reg)
				require.NoError(t, slow.Start(c))
				synctest.Wait()
				require.False(t, c.Idle())
				start := time.Now()
				require.NoError(t, c.Finish())
				require.Equal(t, tt.waits, time.Since(start))
				require.ErrorIs(t, cause, lazy.ErrClosed)
				require.Empty(t, log.String())
				require.ErrorIs(t, slow.Start(c), reqctx.ErrFinished)
			})
		})
	}
}

// failures are ways for a started property to fail, and what its reader gets.
var failures = map[string]struct {
	resolve func(context.Context) (int, error)
	read    func(t *testing.T, get func() (int, error))
	logged  bool // if there is no reader
}{
	"error": {gives(0, errBoom), func(t *testing.T, get func() (int, error)) {
		_, err := get()
		require.ErrorIs(t, err, errBoom)
	}, false},
	"panic": {func(context.Context) (int, error) { panic("oh") }, func(t *testing.T, get func() (int, error)) {
		p, ok := panicOf(func() { _, _ = get() }).(*lazy.PanicError)
		require.True(t, ok)
		require.Equal(t, "oh", p.Value)
	}, true},
	"goexit": {func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }, func(t *testing.T, get func() (int, error)) {
		_, err := get()
		require.ErrorIs(t, err, lazy.ErrGoexit)
	}, false},
}

func TestFailureOfAStartedProperty(t *testing.T) {
	for name, f := range failures {
		for readers := range 3 {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					reg, log := logged()
					a := provide(reg, "a", reqctx.Prop[int]{Resolve: f.resolve})
					c := reqctx.New(t.Context(), reg)
					require.NoError(t, a.Start(c))
					synctest.Wait()
					require.Equal(t, reqctx.Failed, infoOf(t, c, "a").State)
					for range readers {
						f.read(t, func() (int, error) { return a.Get(c) })
					}
					err := c.Finish()
					if readers > 0 || !f.logged {
						require.NoError(t, err)
						require.Empty(t, log.String())
						return
					}
					require.ErrorAs(t, err, new(*lazy.PanicError))
					require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
					require.Contains(t, log.String(), "property=a")
				})
			})
		}
	}
}

// Start on a finished request returns ErrFinished if the request had the property. Servers check their routes so.
func TestStartOnAFinishedRequest(t *testing.T) {
	reg := quiet()
	resolved := func(context.Context) (int, error) { t.Error("resolved"); return 0, nil }
	keys := map[error][]reqctx.Key[int]{
		reqctx.ErrFinished:   {provide(reg, "a", reqctx.Prop[int]{Resolve: resolved}), provide(reg, "private", reqctx.Prop[int]{Private: true, Resolve: resolved})},
		reqctx.ErrNoProperty: {{}, reqctx.NewKey[int]("a"), reqctx.NewKey[int]("none")},
		nil:                  {provideState(reg, "state", 1)},
	}
	c := reqctx.New(t.Context(), reg)
	require.NoError(t, c.Finish())
	for want, keys := range keys {
		for _, k := range keys {
			require.ErrorIs(t, k.Start(c), want, "%q", k)
		}
	}
}

func TestTimeoutBeginsWithStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, log := logged()
		var calls atomic.Int32
		slow := provide(reg, "slow", reqctx.Prop[int]{Timeout: 100 * time.Millisecond, Resolve: func(ctx context.Context) (int, error) {
			if calls.Add(1) == 1 {
				return stubborn(time.Second, 1)(ctx)
			}
			return 2, nil
		}})
		c := reqctx.New(t.Context(), reg)
		start := time.Now()
		require.NoError(t, slow.Start(c))
		<-time.After(50 * time.Millisecond)
		_, err := slow.Get(c)
		require.ErrorAs(t, err, new(*reqctx.TimeoutError))
		require.Equal(t, 100*time.Millisecond, time.Since(start), "it began with Start")
		requireGet(t, c, slow, 2)
		require.NoError(t, c.Finish())
		require.Equal(t, time.Second, time.Since(start), "it waits for Resolve to return")
		require.Empty(t, log.String())
	})
}
