package reqctx_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

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
