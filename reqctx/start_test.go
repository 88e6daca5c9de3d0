package reqctx_test

import (
	"context"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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

// recorded is a property that takes 10 ms and writes down what is called.
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

func TestStartedPropertiesAreResolvedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		a, b := provide(reg, "a", recorded(&j, "a")), provide(reg, "b", recorded(&j, "b"))
		c := reqctx.New(t.Context(), reg)
		start := time.Now()
		begin(t, c, a, b)
		require.Zero(t, time.Since(start))
		require.Equal(t, reqctx.Info{State: reqctx.Resolving}, infoOf(t, c, "a"))
		for want, k := range map[string]reqctx.Key[string]{"a": a, "b": b} {
			v, err := k.Get(c)
			require.NoError(t, err)
			require.Equal(t, want, v)
		}
		require.Equal(t, 10*time.Millisecond, time.Since(start))
		require.NoError(t, c.Finish())
		require.ElementsMatch(t, []string{"resolve a", "resolve b", "close a", "close b"}, j.all())
	})
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
		v, err := user.Get(c)
		require.NoError(t, err, "it can be read after that")
		require.Equal(t, "user", v)
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
		c := reqctx.New(reqctx.Preset(t.Context(), preset, 7), reg)
		require.NoError(t, set.Set(c, 5))
		begin(t, c, running)
		synctest.Wait()
		begin(t, c, set, preset, running, running)
		synctest.Wait()
		require.Equal(t, int32(1), calls.Load())
		for k, want := range map[reqctx.Key[int]]int{set: 5, preset: 7, running: 1} {
			v, err := k.Get(c)
			require.NoError(t, err)
			require.Equal(t, want, v)
		}
		require.NoError(t, c.Finish())
	})
}

func TestSetAndInvalidateAfterStart(t *testing.T) {
	for _, complete := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			reg := quiet()
			var j journal
			set, again := provide(reg, "set", recorded(&j, "set")), provide(reg, "again", recorded(&j, "again"))
			c := reqctx.New(t.Context(), reg)
			begin(t, c, set, again)
			if complete {
				<-time.After(20 * time.Millisecond)
			}
			synctest.Wait()
			require.NoError(t, set.Set(c, "mine"))
			require.NoError(t, again.Invalidate(c))
			v, err := set.Get(c)
			require.NoError(t, err)
			require.Equal(t, "mine", v)
			v, err = again.Get(c)
			require.NoError(t, err)
			require.Equal(t, "again", v)
			synctest.Wait()
			h := http.Header{}
			require.NoError(t, c.Commit(http.StatusOK, h))
			require.ElementsMatch(t, []string{"X-set", "X-again"}, h["Vary"])
			require.NoError(t, c.Finish())
			calls := map[string]int{}
			for _, line := range j.all() {
				calls[line]++
			}
			require.Equal(t, map[string]int{"resolve set": 1, "commit set": 1, "close set": 1,
				"resolve again": 2, "commit again": 1, "close again": 2}, calls)
		})
	}
}

// readers keeps a value of the context of each resolution's first reader.
type readers struct {
	journal
	key any
}

func (o *readers) ResolveStart(ctx context.Context, name string) context.Context {
	span, _ := reqctx.Reader(ctx).Value(o.key).(string)
	o.add(name + " in " + span)
	return ctx
}

func (*readers) ResolveEnd(context.Context, string, time.Duration, error) {}

// The reader of a started property is the context that Start was given.
func TestReaderOfAStartedProperty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type spanKey struct{}
		o := &readers{key: spanKey{}}
		reg := reqctx.NewRegistry(reqctx.Options{Observer: o})
		a := provide(reg, "a", reqctx.Prop[int]{Resolve: gives(1, nil)})
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, a.Start(context.WithValue(c, spanKey{}, "middleware")))
		synctest.Wait()
		require.Equal(t, []string{"a in middleware"}, o.all())
		require.NoError(t, c.Finish())
	})
}

func TestStartInNestedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outerReg, innerReg := quiet(), quiet()
		var j journal
		session := provide(outerReg, "session", recorded(&j, "session"))
		user := provide(innerReg, "user", reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) { return session.Get(ctx) }})
		outer := reqctx.New(t.Context(), outerReg)
		inner := reqctx.New(outer, innerReg)
		begin(t, inner, user, session)
		<-time.After(time.Second)
		synctest.Wait()
		require.NoError(t, inner.Finish())
		h := http.Header{}
		require.NoError(t, outer.Commit(http.StatusOK, h))
		require.Equal(t, []string{"X-session"}, h["Vary"])
		require.NoError(t, outer.Finish())
		require.Equal(t, []string{"resolve session", "commit session", "close session"}, j.all())
	})
}

func TestStartedPropertiesUnderLoad(t *testing.T) {
	reg := quiet()
	keys := map[string]reqctx.Key[int]{}
	var resolved, closed atomic.Int32
	for _, name := range []string{"a", "b", "c", "d"} {
		var on []reqctx.Key[int]
		for _, k := range keys {
			on = append(on, k)
		}
		keys[name] = provide(reg, name, reqctx.Prop[int]{Vary: []string{name}, Resolve: func(ctx context.Context) (int, error) {
			resolved.Add(1)
			sum := 1
			for _, k := range on {
				n, err := k.Get(ctx)
				if err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, nil
		}, Close: func(context.Context, int, error) error { closed.Add(1); return nil }})
	}
	for i := range 2000 {
		c := reqctx.New(t.Context(), reg)
		begin(t, c, keys["a"], keys["b"], keys["c"], keys["d"])
		if i%3 > 0 {
			require.NoError(t, c.Go("reader", func(ctx context.Context) error { _, err := keys["d"].Get(ctx); return err }))
		}
		if i%2 > 0 {
			v, err := keys["d"].Get(c)
			require.NoError(t, err)
			require.Equal(t, 8, v)
			h := http.Header{}
			require.NoError(t, c.Commit(http.StatusOK, h))
			require.Len(t, h["Vary"], 4, "d has read the others")
		}
		for range c.Props() {
			runtime.Gosched()
		}
		require.NoError(t, c.Finish())
	}
	require.Equal(t, resolved.Load(), closed.Load())
}
