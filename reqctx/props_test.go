package reqctx_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestPropsOfEveryState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		provide(reg, "unread", reqctx.Prop[int]{Resolve: gives(1, nil)})
		slow := provide(reg, "slow", reqctx.Prop[int]{Resolve: takes(time.Minute, 1)})
		fine := provide(reg, "fine", reqctx.Prop[int]{Resolve: takes(time.Second, 1)})
		fails := provide(reg, "fails", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
			_, _ = fine.Get(ctx)
			<-time.After(time.Second)
			return 0, errBoom
		}})
		bad := provide(reg, "bad", reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { panic("bang") }})
		set := provide(reg, "set", reqctx.Prop[int]{Resolve: gives(1, nil)})
		state := provideState(reg, "state", 1)

		c := reqctx.New(t.Context(), reg)
		start := time.Now()
		_, _ = fails.Get(c)
		panicOf(func() { _, _ = bad.Get(c) })
		_, _ = set.Get(c)
		require.NoError(t, set.Set(c, 2))
		_, _ = state.Get(c)
		require.NoError(t, slow.Start(c))
		synctest.Wait()

		props := maps.Collect(c.Props())
		require.Len(t, props, 6, "the state is left out")
		require.Equal(t, reqctx.Info{}, props["unread"])
		require.Equal(t, reqctx.Info{State: reqctx.Resolving}, props["slow"])
		require.Equal(t, reqctx.Info{
			State: reqctx.Resolved, Began: start, Took: time.Second, Waited: time.Second, Asked: 1, By: "fails",
		}, props["fine"])
		require.Equal(t, reqctx.Info{
			State: reqctx.Failed, Began: start, Took: 2 * time.Second, Waited: 2 * time.Second, Asked: 1, Err: errBoom,
		}, props["fails"])
		require.Equal(t, reqctx.Failed, props["bad"].State)
		require.ErrorAs(t, props["bad"].Err, new(*lazy.PanicError))
		require.Equal(t, reqctx.Info{State: reqctx.Assigned}, props["set"])
		require.NoError(t, c.Finish())
		require.Equal(t, reqctx.Unused, maps.Collect(c.Props())["fine"].State, "a finished request has nothing to tell")
	})
}

func TestPropsInOrder(t *testing.T) {
	reg := quiet()
	for _, name := range []string{"b", "a", "c"} {
		provide(reg, name, reqctx.Prop[int]{})
	}
	c := reqctx.New(t.Context(), reg)
	var names []string
	for name := range c.Props() {
		if names = append(names, name); len(names) == 2 {
			break
		}
	}
	require.Equal(t, []string{"b", "a"}, names)
	require.Equal(t, "unused resolving resolved failed assigned",
		fmt.Sprint(reqctx.Unused, reqctx.Resolving, reqctx.Resolved, reqctx.Failed, reqctx.Assigned))
}

func TestWaitedAndAskedCountEveryReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		k := provide(reg, "k", reqctx.Prop[int]{Resolve: takes(10*time.Second, 1)})
		c := request(t, reg)
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				<-time.After(time.Duration(i) * time.Second)
				_, _ = k.Get(c)
			})
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(c, 5*time.Second)
			defer cancel()
			<-time.After(time.Second)
			_, err := k.Get(ctx)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
		wg.Wait()
		_, _ = k.Get(c)
		info := maps.Collect(c.Props())["k"]
		require.Equal(t, 4, info.Asked, "the reader that left counts, the reader that did not wait does not")
		require.Equal(t, (10+9+8)*time.Second, info.Waited)
		require.Equal(t, 10*time.Second, info.Took)
	})
}

func TestByNamesThePropertyThatAsked(t *testing.T) {
	reg := quiet()
	provide(reg, "a", reqctx.Prop[int]{Resolve: gives(1, nil)})
	provide(reg, "b", reqctx.Prop[int]{Resolve: gives(1, nil)})
	provide(reg, "c", reqctx.Prop[int]{Resolve: gives(1, nil), Timeout: time.Hour})
	d := provide(reg, "d", reqctx.Prop[int]{Resolve: gives(1, nil)})
	outer := provide(reg, "outer", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
		require.NoError(t, d.Start(ctx))
		return 0, reqctx.Resolve(ctx, "a", "b", "c", "d")
	}})
	c := request(t, reg)
	require.NoError(t, outer.Require(c))
	props := maps.Collect(c.Props())
	for _, name := range []string{"a", "b", "c", "d"} {
		require.Equal(t, "outer", props[name].By, name)
	}
	require.Empty(t, props["outer"].By)

	other := provide(reg, "other", reqctx.Prop[int]{Resolve: gives(1, nil)})
	c2 := request(t, reg)
	require.NoError(t, lazy.New(other.Get).Wait(c2))
	require.Empty(t, maps.Collect(c2.Props())["other"].By, "a lazy value is no property")
}

func TestCallerIsTheLineThatAsked(t *testing.T) {
	for _, on := range []bool{true, false} {
		reg := reqctx.NewRegistry(reqctx.Options{Callers: on})
		keys := map[string]reqctx.Key[int]{}
		for _, name := range []string{"key", "name", "resolve"} {
			keys[name] = provide(reg, name, reqctx.Prop[int]{Resolve: gives(1, nil)})
		}
		ask := map[string]func(c *reqctx.Host) (line int){
			"key": func(c *reqctx.Host) int {
				_, _ = keys["key"].Get(context.WithoutCancel(c))
				return lineBefore()
			},
			"name": func(c *reqctx.Host) int {
				_, _ = reqctx.Get(c, "name")
				return lineBefore()
			},
			"resolve": func(c *reqctx.Host) int {
				_ = reqctx.Resolve(c, "resolve", "resolve")
				return lineBefore()
			},
		}
		c := request(t, reg)
		for name, fn := range ask {
			line := fn(c)
			info := maps.Collect(c.Props())[name]
			caller := info.Caller()
			if !on {
				require.Empty(t, caller)
				continue
			}
			require.Equal(t, fmt.Sprint("props_test.go:", line), filepath.Base(caller), name)
		}
	}
}

// lineBefore returns the number of the line before the one that calls it.
func lineBefore() int {
	_, _, line, _ := runtime.Caller(1)
	return line - 1
}

// recorder is an observer that records its calls. It puts the name of the property into the context.
type recorder struct {
	j *journal
}

type observedKey struct{}

func (r *recorder) ResolveStart(ctx context.Context, name string) context.Context {
	r.j.add("start " + name)
	return context.WithValue(ctx, observedKey{}, name)
}

func (r *recorder) ResolveEnd(ctx context.Context, name string, took time.Duration, err error) {
	r.j.add(fmt.Sprintf("end %s %v %v %v", name, ctx.Value(observedKey{}), took, err))
}

func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		reg := reqctx.NewRegistry(reqctx.Options{Observer: &recorder{&j}})
		sees := func(ctx context.Context, name string) {
			require.Equal(t, name, ctx.Value(observedKey{}), "Resolve gets the observer's context")
		}
		inner := provide(reg, "inner", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
			sees(ctx, "inner")
			return takes(time.Second, 1)(ctx)
		}})
		failed := provide(reg, "failed", reqctx.Prop[int]{Timeout: time.Hour, Resolve: func(ctx context.Context) (int, error) {
			sees(ctx, "failed")
			return 0, errBoom
		}})
		outer := provide(reg, "outer", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
			sees(ctx, "outer")
			_, _ = inner.Get(ctx)
			_, _ = failed.Get(ctx)
			_, _ = inner.Get(ctx)
			<-time.After(time.Second)
			return 1, nil
		}})
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, outer.Require(c))
		require.NoError(t, c.Finish())
		require.Equal(t, []string{
			"start outer",
			"start inner",
			"end inner inner 1s <nil>",
			"start failed",
			"end failed failed 0s boom",
			"end outer outer 2s <nil>",
		}, j.all())
	})
}

// pathObserver puts the names of a property and of its readers into its context.
type pathObserver struct {
	j *journal
}

func (o pathObserver) ResolveStart(ctx context.Context, name string) context.Context {
	from, _ := reqctx.Reader(ctx).Value(observedKey{}).(string)
	o.j.add(from + "/" + name)
	return context.WithValue(ctx, observedKey{}, from+"/"+name)
}

func (pathObserver) ResolveEnd(context.Context, string, time.Duration, error) {}

func TestReader(t *testing.T) {
	var j journal
	reg := reqctx.NewRegistry(reqctx.Options{Observer: pathObserver{&j}})
	state := provideState(reg, "state", 1)
	inner := provide(reg, "inner", reqctx.Prop[int]{Resolve: state.Get})
	late := provide(reg, "late", reqctx.Prop[int]{Timeout: time.Hour, Resolve: inner.Get})
	outer := provide(reg, "outer", reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
		require.Nil(t, ctx.Value(readerKey{}), "Resolve does not get the reader's values")
		return late.Get(ctx)
	}})
	provide(reg, "other", reqctx.Prop[int]{Resolve: outer.Get})
	provide(reg, "last", reqctx.Prop[int]{})

	c := request(t, reg)
	require.Equal(t, context.Context(c), reqctx.Reader(c))
	ctx := context.WithValue(context.WithValue(c, observedKey{}, "handler"), readerKey{}, 1)
	require.NoError(t, outer.Require(ctx))
	require.Equal(t, []string{"handler/outer", "handler/outer/late", "handler/outer/late/inner"}, j.all())

	c = reqctx.New(t.Context(), reg)
	j = journal{}
	ctx = context.WithValue(c, observedKey{}, "task")
	require.ErrorIs(t, reqctx.Resolve(ctx, "other", "last"), reqctx.ErrNoValue)
	require.Subset(t, j.all(), []string{"task/other", "task/last", "task/other/outer", "task/other/outer/late/inner"})
}

type readerKey struct{}

func TestObserverSeesTheEndOfWhatDoesNotReturn(t *testing.T) {
	var j journal
	reg := reqctx.NewRegistry(reqctx.Options{Observer: &recorder{&j}})
	bad := provide(reg, "bad", reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { panic(errBoom) }})
	exits := provide(reg, "exits", reqctx.Prop[int]{Resolve: func(context.Context) (int, error) {
		runtime.Goexit()
		return 1, nil
	}})
	c := reqctx.New(t.Context(), reg)
	p, ok := panicOf(func() { _, _ = bad.Get(c) }).(*lazy.PanicError)
	require.True(t, ok)
	require.Contains(t, string(p.Stack), "TestObserverSeesTheEndOfWhatDoesNotReturn", "the stack is Resolve's")
	require.NoError(t, exits.Start(c))
	require.ErrorIs(t, exits.Require(c), lazy.ErrGoexit)
	require.NoError(t, c.Finish())
	lines := j.all()
	require.Len(t, lines, 4)
	for _, name := range []string{"bad", "exits"} {
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "end "+name) })
		require.GreaterOrEqual(t, i, 0)
		require.Contains(t, lines[i], reqctx.ErrNotReturned.Error())
	}
}
