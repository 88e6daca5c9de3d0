package reqctx_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// chain provides "session" and "user", which reads it, both safe to prefetch.
func chain(reg *reqctx.Registry, j *journal) (session, user reqctx.Key[string]) {
	session = provide(reg, "session", early(j, "session"))
	p := early(j, "user")
	own := p.Resolve
	p.Resolve = func(ctx context.Context) (string, error) {
		if _, err := session.Get(ctx); err != nil {
			return "", err
		}
		return own(ctx)
	}
	return session, provide(reg, "user", p)
}

func TestDependenciesOfUnreadPrefetch(t *testing.T) {
	for name, names := range map[string][]string{"alone": {"user"}, "both": {"session", "user"}, "reversed": {"user", "session"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg := quiet()
				var j journal
				chain(reg, &j)
				c := reqctx.New(t.Context(), reg)
				require.NoError(t, c.Prefetch(names...))
				<-time.After(time.Second)
				info := infoOf(t, c, "session")
				require.True(t, info.Unread)
				require.Equal(t, "user", info.By)
				require.True(t, infoOf(t, c, "user").Unread)
				h := http.Header{}
				require.NoError(t, c.Commit(h))
				require.Empty(t, h)
				require.NoError(t, c.Finish())
				require.Equal(t, []string{"resolve session", "resolve user", "close user", "close session"}, j.all())
			})
		})
	}
}

func TestDependenciesOfReadPrefetch(t *testing.T) {
	for _, wait := range []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			reg := quiet()
			var j journal
			_, user := chain(reg, &j)
			c := reqctx.New(t.Context(), reg)
			require.NoError(t, c.Prefetch("user"))
			<-time.After(wait)
			v, err := user.Get(c)
			require.NoError(t, err)
			require.Equal(t, "user", v)
			require.False(t, infoOf(t, c, "session").Unread)
			h := http.Header{}
			require.NoError(t, c.Commit(h))
			require.Equal(t, []string{"X-session", "X-user"}, h["Vary"])
			require.NoError(t, c.Finish())
			require.Equal(t, []string{"resolve session", "resolve user", "commit session", "commit user", "close user", "close session"}, j.all())
		})
	}
}

func TestReadDependencyOfUnreadPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		session, _ := chain(reg, &j)
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Prefetch("user"))
		_, err := session.Get(c)
		require.NoError(t, err)
		<-time.After(time.Second)
		h := http.Header{}
		require.NoError(t, c.Commit(h))
		require.Equal(t, []string{"X-session"}, h["Vary"])
		require.True(t, infoOf(t, c, "user").Unread)
		require.NoError(t, c.Finish())
		require.Equal(t, []string{"resolve session", "resolve user", "commit session", "close user", "close session"}, j.all())
	})
}

// What is not marked may be a take: what it adds to the response must not get lost.
func TestUnmarkedDependencyOfPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		p := early(&j, "take")
		p.Prefetch = false
		take := provide(reg, "take", p)
		provide(reg, "user", reqctx.Prop[string]{Prefetch: true, Resolve: func(ctx context.Context) (string, error) { return take.Get(ctx) }})
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Prefetch("user"))
		<-time.After(time.Second)
		require.True(t, infoOf(t, c, "user").Unread)
		require.Equal(t, reqctx.Info{}, reqctx.Info{Unread: infoOf(t, c, "take").Unread, Prefetched: infoOf(t, c, "take").Prefetched})
		h := http.Header{}
		require.NoError(t, c.Commit(h))
		require.Equal(t, []string{"X-take"}, h["Vary"])
		require.NoError(t, c.Finish())
		require.Equal(t, []string{"resolve take", "commit take", "close take"}, j.all())
	})
}

func TestCycleOfPrefetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		a, b := reqctx.NewKey[int]("a"), reqctx.NewKey[int]("b")
		reads := func(k *reqctx.Key[int]) reqctx.Prop[int] {
			return reqctx.Prop[int]{Prefetch: true, Resolve: func(ctx context.Context) (int, error) { return k.Get(ctx) },
				Close: func(context.Context, int, error) error { return nil }}
		}
		reqctx.Provide(reg, a, reads(&b))
		reqctx.Provide(reg, b, reads(&a))
		for _, read := range []bool{false, true} {
			c := reqctx.New(t.Context(), reg)
			require.NoError(t, c.Prefetch("a", "b"))
			if read {
				var cycle *lazy.CycleError
				_, err := a.Get(c)
				require.ErrorAs(t, err, &cycle)
			}
			synctest.Wait()
			require.NoError(t, c.Finish())
		}
	})
}

func TestPrefetchInNestedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outerReg, innerReg := quiet(), quiet()
		var j journal
		session := provide(outerReg, "session", early(&j, "session"))
		user := provide(innerReg, "user", reqctx.Prop[string]{Prefetch: true, Resolve: func(ctx context.Context) (string, error) { return session.Get(ctx) }})
		for _, read := range []bool{false, true} {
			outer := reqctx.New(t.Context(), outerReg)
			inner := reqctx.New(outer, innerReg)
			require.ErrorIs(t, inner.Prefetch("session"), reqctx.ErrNoProperty, "only the own registry's")
			require.NoError(t, inner.Prefetch("user"))
			<-time.After(time.Second)
			if read {
				_, err := user.Get(inner)
				require.NoError(t, err)
			}
			require.Equal(t, !read, infoOf(t, outer, "session").Unread)
			require.NoError(t, inner.Finish())
			h := http.Header{}
			require.NoError(t, outer.Commit(h))
			require.Equal(t, read, len(h["Vary"]) > 0)
			require.NoError(t, outer.Finish())
		}
	})
}

func TestPrefetchOfOverride(t *testing.T) {
	reg := quiet()
	k := provide(reg, "a", reqctx.Prop[int]{Prefetch: true, Resolve: gives(1, nil)})
	override := reqctx.Override(reg, k, reqctx.Prop[int]{Resolve: gives(2, nil)})
	c := reqctx.New(t.Context(), override)
	require.ErrorIs(t, c.Prefetch("a"), reqctx.ErrNoPrefetch)
	require.NoError(t, c.Finish())
	require.NoError(t, reg.CheckPrefetch("a"))
}

func TestPrefetchedPropertiesUnderLoad(t *testing.T) {
	reg := quiet()
	keys := map[string]reqctx.Key[int]{}
	for _, name := range []string{"a", "b", "c", "d"} {
		var on []reqctx.Key[int]
		for _, k := range keys {
			on = append(on, k)
		}
		keys[name] = provide(reg, name, reqctx.Prop[int]{Prefetch: true, Vary: []string{name}, Resolve: func(ctx context.Context) (int, error) {
			runtime.Gosched()
			sum := 1
			for _, k := range on {
				n, err := k.Get(ctx)
				if err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, nil
		}, Close: func(context.Context, int, error) error { return nil }})
	}
	for i := range 2000 {
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Prefetch("a", "b", "c", "d"))
		if i%3 > 0 {
			require.NoError(t, c.Go("reader", func(ctx context.Context) error { _, err := keys["d"].Get(ctx); return err }))
		}
		if i%2 > 0 {
			v, err := keys["d"].Get(c)
			require.NoError(t, err)
			require.Equal(t, 8, v)
			h := http.Header{}
			require.NoError(t, c.Commit(h))
			require.Len(t, h["Vary"], 4, "all that d has read was read")
		}
		for range c.Props() {
			runtime.Gosched()
		}
		require.NoError(t, c.Finish())
	}
}
