package reqctx_test

import (
	"context"
	"net/http"
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

// infoOf returns a property's state in c.
func infoOf(t *testing.T, c *reqctx.Host, name string) reqctx.Info {
	t.Helper()
	for n, info := range c.Props() {
		if n == name {
			return info
		}
	}
	t.Fatalf("no property %q", name)
	return reqctx.Info{}
}

// recorded returns a property that takes 10 ms and records the calls of its functions in j.
func recorded(j *journal, name string) reqctx.Prop[string] {
	return reqctx.Prop[string]{
		Vary: []string{"X-" + name},
		Resolve: func(ctx context.Context) (string, error) {
			j.add("resolve " + name)
			return takes(10*time.Millisecond, name)(ctx)
		},
		Commit: func(context.Context, string, int, http.Header) error { j.add("commit " + name); return nil },
		Close:  func(_ context.Context, v string, _ error) error { j.add("close " + v); return nil },
	}
}

// chain provides "session", and "user", which reads it.
func chain(reg *reqctx.Registry, j *journal) (user reqctx.Key[string]) {
	session := provide(reg, "session", recorded(j, "session"))
	p := recorded(j, "user")
	own := p.Resolve
	p.Resolve = func(ctx context.Context) (string, error) {
		if _, err := session.Get(ctx); err != nil {
			return "", err
		}
		return own(ctx)
	}
	return provide(reg, "user", p)
}

// begin starts the properties of keys.
func begin[T any](t *testing.T, c *reqctx.Host, keys ...reqctx.Key[T]) {
	t.Helper()
	for _, k := range keys {
		require.NoError(t, k.Start(c))
	}
}

func TestStartCountsAsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		user := chain(reg, &j)
		c := reqctx.New(t.Context(), reg)
		begin(t, c, user)
		<-time.After(20 * time.Millisecond)
		synctest.Wait()
		v, err, ok := user.Peek(c)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "user", v)
		require.Equal(t, "user", infoOf(t, c, "session").By)
		require.False(t, c.CommitUnused())
		h := http.Header{}
		require.NoError(t, c.Commit(http.StatusOK, h))
		require.Equal(t, []string{"X-session", "X-user"}, h["Vary"])
		require.NoError(t, c.Finish())
		require.Equal(t, []string{"resolve session", "resolve user", "commit session", "commit user", "close user", "close session"}, j.all())
	})
}

func TestStartedPropertyThatIsNotThereAtTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		user := chain(reg, &j)
		c := reqctx.New(t.Context(), reg)
		begin(t, c, user)
		<-time.After(15 * time.Millisecond)
		h := http.Header{}
		require.NoError(t, c.Commit(http.StatusOK, h))
		require.Equal(t, []string{"X-session"}, h["Vary"])
		requireGet(t, c, user, "user")
		require.NoError(t, c.Finish())
		require.Equal(t, []string{"resolve session", "resolve user", "commit session", "close user", "close session"}, j.all())
	})
}

func TestStartKeepsExistingValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var calls atomic.Int32
		p := reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
			calls.Add(1)
			return takes(time.Second, 1)(ctx)
		}}
		set, preset, running := provide(reg, "set", p), provide(reg, "preset", p), provide(reg, "running", p)
		c := requestOf(t, reqctx.Preset(t.Context(), preset, 7), reg)
		require.NoError(t, set.Set(c, 5))
		begin(t, c, running)
		synctest.Wait()
		begin(t, c, set, preset, running, running)
		synctest.Wait()
		require.Equal(t, int32(1), calls.Load())
		for k, want := range map[reqctx.Key[int]]int{set: 5, preset: 7, running: 1} {
			requireGet(t, c, k, want)
		}
	})
}

// failures has the ways in which a started property can fail, and the results for its reader.
var failures = map[string]struct {
	resolve func(context.Context) (int, error)
	read    func(t *testing.T, get func() (int, error))
	logged  bool // whether the error is logged if there is no reader
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

// Start on a finished request returns ErrFinished if its registry has the property. Servers check routes in this way.
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
