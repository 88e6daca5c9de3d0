package reqctx_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// infoOf returns a property's state in c.
func infoOf(t *testing.T, c *reqctx.Context, name string) reqctx.Info {
	t.Helper()
	for n, info := range c.Props() {
		if n == name {
			return info
		}
	}
	t.Fatalf("no property %q", name)
	return reqctx.Info{}
}

// early is a property that takes 10 ms, may be prefetched, and writes down what is called.
func early(j *journal, name string) reqctx.Prop[string] {
	return reqctx.Prop[string]{
		Prefetch: true, Vary: []string{"X-" + name},
		Resolve: func(ctx context.Context) (string, error) {
			j.add("resolve " + name)
			return takes(10*time.Millisecond, name)(ctx)
		},
		Commit: func(context.Context, string, http.Header) error { j.add("commit " + name); return nil },
		Close:  func(_ context.Context, v string, _ error) error { j.add("close " + v); return nil },
	}
}

func TestPrefetchedPropertiesAreResolvedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		a, b := provide(reg, "a", early(&j, "a")), provide(reg, "b", early(&j, "b"))
		c := reqctx.New(t.Context(), reg)
		start := time.Now()
		require.NoError(t, c.Prefetch("a", "b"))
		require.Zero(t, time.Since(start))
		info := infoOf(t, c, "a")
		require.Equal(t, reqctx.Info{State: reqctx.Resolving, CanPrefetch: true, Prefetched: true, Unread: true}, info)

		v, err := a.Get(c)
		require.NoError(t, err)
		require.Equal(t, "a", v)
		v, err = b.Get(c)
		require.NoError(t, err)
		require.Equal(t, "b", v)
		require.Equal(t, 10*time.Millisecond, time.Since(start))
		info = infoOf(t, c, "a")
		require.Equal(t, reqctx.Resolved, info.State)
		require.True(t, info.Prefetched)
		require.False(t, info.Unread)
		require.Equal(t, 1, info.Asked)
		require.Equal(t, 10*time.Millisecond, info.Waited)

		h := http.Header{}
		require.NoError(t, c.Commit(h))
		require.ElementsMatch(t, []string{"X-A", "X-B"}, canonical(h["Vary"]))
		require.NoError(t, c.Finish())
		require.ElementsMatch(t, []string{"resolve a", "resolve b", "commit a", "commit b", "close a", "close b"}, j.all())
	})
}

func canonical(names []string) (out []string) {
	for _, n := range names {
		out = append(out, http.CanonicalHeaderKey(n))
	}
	return out
}

func TestUnreadPrefetchHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		a := provide(reg, "a", early(&j, "a"))
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Prefetch("a"))
		<-time.After(20 * time.Millisecond)
		info := infoOf(t, c, "a")
		require.Equal(t, reqctx.Resolved, info.State)
		require.Equal(t, 10*time.Millisecond, info.Took)
		require.True(t, info.Unread)
		require.Zero(t, info.Asked)
		_, _, ok := a.Peek(c)
		require.False(t, ok)
		require.False(t, c.PrefetchPending())
		require.False(t, c.Idle(), "it has something to close")

		h := http.Header{}
		require.NoError(t, c.Commit(h))
		require.Empty(t, h)
		v, err := a.Get(c)
		require.NoError(t, err, "it can be read later than that")
		require.Equal(t, "a", v)
		require.NoError(t, c.Finish())
		require.Equal(t, []string{"resolve a", "close a"}, j.all())
	})
}

func TestPrefetchWithoutCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		provide(reg, "a", reqctx.Prop[int]{Prefetch: true, Vary: []string{"Cookie"}, Resolve: gives(1, nil)})
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Prefetch("a"))
		synctest.Wait()
		require.True(t, c.CommitUnused())
		require.True(t, c.Idle())
		require.NoError(t, c.Finish())
	})
}

func TestFinishCancelsUnreadPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, log := logged()
		var cause error
		provide(reg, "slow", reqctx.Prop[int]{Prefetch: true, Resolve: func(ctx context.Context) (int, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return 0, cause
		}})
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Prefetch("slow"))
		require.True(t, c.PrefetchPending())
		require.False(t, c.Idle())
		start := time.Now()
		require.NoError(t, c.Finish())
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, cause, lazy.ErrClosed)
		require.Empty(t, log.String())
		require.ErrorIs(t, c.Prefetch("slow"), reqctx.ErrFinished)
	})
}

// failures are ways for a prefetched property to fail, and what its reader gets.
var failures = map[string]struct {
	resolve func(context.Context) (int, error)
	warning bool
	read    func(t *testing.T, get func() (int, error))
}{
	"error": {gives(0, errBoom), false, func(t *testing.T, get func() (int, error)) {
		_, err := get()
		require.ErrorIs(t, err, errBoom)
	}},
	"panic": {func(context.Context) (int, error) { panic("oh") }, true, func(t *testing.T, get func() (int, error)) {
		p, ok := panicOf(func() { _, _ = get() }).(*lazy.PanicError)
		require.True(t, ok)
		require.Equal(t, "oh", p.Value)
	}},
	"goexit": {func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }, false, func(t *testing.T, get func() (int, error)) {
		_, err := get()
		require.ErrorIs(t, err, lazy.ErrGoexit)
	}},
}

func TestUnreadFailureIsNotReported(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, log := logged()
				provide(reg, "a", reqctx.Prop[int]{Prefetch: true, Resolve: f.resolve})
				c := reqctx.New(t.Context(), reg)
				require.NoError(t, c.Prefetch("a"))
				synctest.Wait()
				info := infoOf(t, c, "a")
				require.Equal(t, reqctx.Failed, info.State)
				require.Error(t, info.Err)
				require.True(t, info.Unread)
				require.NoError(t, c.Finish())
				if f.warning {
					require.Contains(t, log.String(), `level=WARN msg="a prefetched property that nothing read panicked" property=a`)
					require.NotContains(t, log.String(), "ERROR")
				} else {
					require.Empty(t, log.String())
				}
			})
		})
	}
}

func TestReaderGetsPrefetchedFailure(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, log := logged()
				a := provide(reg, "a", reqctx.Prop[int]{Prefetch: true, Resolve: f.resolve})
				c := reqctx.New(t.Context(), reg)
				require.NoError(t, c.Prefetch("a"))
				synctest.Wait()
				for range 2 {
					f.read(t, func() (int, error) { return a.Get(c) })
				}
				require.False(t, infoOf(t, c, "a").Unread)
				require.NoError(t, c.Finish())
				require.Empty(t, log.String())
			})
		})
	}
}

func TestPrefetchRefuses(t *testing.T) {
	reg := quiet()
	provide(reg, "a", reqctx.Prop[int]{Prefetch: true, Resolve: func(context.Context) (int, error) { t.Error("resolved"); return 0, nil }})
	provide(reg, "unsafe", reqctx.Prop[int]{Resolve: gives(1, nil)})
	provide(reg, "handle", reqctx.Prop[int]{Handle: true, Resolve: gives(1, nil)})
	c := reqctx.New(t.Context(), reg)
	for name, want := range map[string]error{"none": reqctx.ErrNoProperty, "unsafe": reqctx.ErrNoPrefetch, "handle": reqctx.ErrNoPrefetch} {
		require.ErrorIs(t, c.Prefetch("a", name), want, "nothing begins")
		require.ErrorIs(t, reg.CheckPrefetch("a", name), want)
		require.ErrorContains(t, reg.CheckPrefetch(name), `"`+name+`"`)
	}
	require.NoError(t, reg.CheckPrefetch("a"))
	require.NoError(t, c.Finish())

	require.PanicsWithValue(t, `reqctx: property "b" has Prefetch: it needs Resolve`, func() {
		provide(reg, "b", reqctx.Prop[int]{Prefetch: true})
	})
	require.PanicsWithValue(t, `reqctx: property "h" is a Handle: it needs Resolve and cannot have a Timeout or Prefetch`, func() {
		provide(reg, "h", reqctx.Prop[int]{Prefetch: true, Handle: true, Resolve: gives(1, nil)})
	})
}

func TestPrefetchKeepsExistingValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var calls atomic.Int32
		p := reqctx.Prop[int]{Prefetch: true, Resolve: func(ctx context.Context) (int, error) {
			calls.Add(1)
			return takes(time.Second, 1)(ctx)
		}}
		set, preset, running := provide(reg, "set", p), provide(reg, "preset", p), provide(reg, "running", p)
		c := reqctx.New(reqctx.Preset(t.Context(), preset, 7), reg)
		require.NoError(t, set.Set(c, 5))
		require.NoError(t, running.Start(c))
		synctest.Wait()
		require.NoError(t, c.Prefetch("set", "preset", "running"))
		require.NoError(t, c.Prefetch("running"))
		synctest.Wait()
		require.Equal(t, int32(1), calls.Load())
		require.False(t, infoOf(t, c, "running").Prefetched)
		for k, want := range map[reqctx.Key[int]]int{set: 5, preset: 7, running: 1} {
			v, err := k.Get(c)
			require.NoError(t, err)
			require.Equal(t, want, v)
		}
		require.NoError(t, c.Finish())
	})
}

func TestSetAndInvalidateDuringPrefetch(t *testing.T) {
	for _, complete := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			reg := quiet()
			var j journal
			set, again := provide(reg, "set", early(&j, "set")), provide(reg, "again", early(&j, "again"))
			c := reqctx.New(t.Context(), reg)
			require.NoError(t, c.Prefetch("set", "again"))
			if complete {
				<-time.After(20 * time.Millisecond)
			} else {
				synctest.Wait()
			}
			require.NoError(t, set.Set(c, "mine"))
			require.NoError(t, again.Invalidate(c))
			v, err := set.Get(c)
			require.NoError(t, err)
			require.Equal(t, "mine", v)
			require.Equal(t, reqctx.Assigned, infoOf(t, c, "set").State)

			h := http.Header{}
			require.NoError(t, c.Commit(h))
			require.Empty(t, h, "neither prefetched value was read")
			v, err = again.Get(c)
			require.NoError(t, err)
			require.Equal(t, "again", v)
			require.False(t, infoOf(t, c, "again").Unread)
			require.NoError(t, c.Finish())
			closed := map[string]int{}
			for _, line := range j.all() {
				closed[line]++
			}
			require.Equal(t, map[string]int{"resolve set": 1, "commit set": 1, "close set": 1,
				"resolve again": 2, "close again": 2}, closed)
		})
	}
}

func TestTimeoutOfPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, log := logged()
		var calls atomic.Int32
		slow := provide(reg, "slow", reqctx.Prop[int]{Prefetch: true, Timeout: 100 * time.Millisecond, Resolve: func(ctx context.Context) (int, error) {
			if calls.Add(1) == 1 {
				return stubborn(time.Second, 1)(ctx)
			}
			return 2, nil
		}})
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Prefetch("slow"))
		<-time.After(50 * time.Millisecond)
		_, err := slow.Get(c)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the time began with the prefetch")

		c2 := reqctx.New(t.Context(), reg)
		calls.Store(0)
		require.NoError(t, c2.Prefetch("slow"))
		<-time.After(200 * time.Millisecond)
		info := infoOf(t, c2, "slow")
		require.Equal(t, reqctx.Failed, info.State)
		require.ErrorIs(t, info.Err, context.DeadlineExceeded)
		require.True(t, info.Unread)
		require.True(t, c2.PrefetchPending(), "Resolve has not returned")
		v, err := slow.Get(c2)
		require.NoError(t, err, "a timeout is not kept")
		require.Equal(t, 2, v)
		require.False(t, infoOf(t, c2, "slow").Unread)
		require.NoError(t, c.Finish())
		require.NoError(t, c2.Finish())
		require.False(t, c2.PrefetchPending())
		require.Empty(t, log.String())
	})
}

// prefetchObserver keeps which resolutions were prefetched.
type prefetchObserver struct{ journal }

func (o *prefetchObserver) ResolveStart(ctx context.Context, name string) context.Context {
	if reqctx.Prefetched(ctx) {
		o.add("prefetch " + name)
	}
	return ctx
}

func (o *prefetchObserver) ResolveEnd(ctx context.Context, name string, _ time.Duration, err error) {
	if reqctx.Prefetched(ctx) && err != nil {
		o.add("unread " + name + ": " + err.Error())
	}
}

func TestObserverOfPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &prefetchObserver{}
		reg := reqctx.NewRegistry(reqctx.Options{Observer: o, Callers: true})
		a := provide(reg, "a", reqctx.Prop[int]{Prefetch: true, Resolve: gives(0, errors.New("no"))})
		b := provide(reg, "b", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
			require.False(t, reqctx.Prefetched(ctx))
			return a.Get(ctx)
		}})
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Prefetch("a"))
		synctest.Wait()
		require.Equal(t, []string{"prefetch a", "unread a: no"}, o.all())
		unread := infoOf(t, c, "a")
		require.Empty(t, unread.Caller())
		_, err := b.Get(c)
		require.Error(t, err)
		info := infoOf(t, c, "a")
		require.Equal(t, "b", info.By)
		require.NotEmpty(t, info.Caller())
		require.False(t, reqctx.Prefetched(c))
		require.NoError(t, c.Finish())
	})
}

// The timeout and the end of Resolve race: each resolution is closed once all the same.
func TestTimeoutAtEndOfPrefetch(t *testing.T) {
	var resolved, closed atomic.Int32
	reg := quiet()
	provide(reg, "a", reqctx.Prop[int]{Prefetch: true, Timeout: 50 * time.Microsecond,
		Resolve: func(context.Context) (int, error) {
			resolved.Add(1)
			<-time.After(50 * time.Microsecond)
			return 1, nil
		},
		Close: func(context.Context, int, error) error { closed.Add(1); return nil },
	})
	for range 2000 {
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, c.Prefetch("a"))
		for infoOf(t, c, "a").State == reqctx.Resolving {
			runtime.Gosched()
		}
		require.NoError(t, c.Finish())
	}
	require.Equal(t, resolved.Load(), closed.Load())
}
