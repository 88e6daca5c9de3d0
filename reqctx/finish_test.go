package reqctx_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// closes returns a Close function that records its arguments in j.
func closes(j *journal, name string) func(context.Context, string, error) error {
	return func(_ context.Context, v string, err error) error {
		j.add(fmt.Sprintf("%s(%q, %v)", name, v, err))
		return nil
	}
}

func TestCloseInReverse(t *testing.T) {
	reg := quiet()
	var j journal
	inner := provide(reg, "inner", reqctx.Prop[string]{Resolve: gives("i", nil), Close: closes(&j, "inner")})
	outer := provide(reg, "outer", reqctx.Prop[string]{Resolve: inner.Get, Close: closes(&j, "outer")})
	failed := provide(reg, "failed", reqctx.Prop[string]{Resolve: gives("f", errBoom), Close: closes(&j, "failed")})
	set := provide(reg, "set", reqctx.Prop[string]{Resolve: gives("s", nil), Close: closes(&j, "set")})
	both := provide(reg, "both", reqctx.Prop[string]{Resolve: gives("b", nil), Close: closes(&j, "both")})
	c := reqctx.New(t.Context(), reg)
	c.OnClose(func() error { j.add("first"); return nil })
	_, _ = failed.Get(c)
	_, _ = outer.Get(c)
	c.OnClose(func() error { j.add("second"); return nil })
	require.NoError(t, set.Set(c, "not resolved"))
	_, _ = both.Get(c)
	require.NoError(t, both.Set(c, "set"))
	require.False(t, c.Idle())
	require.NoError(t, c.Finish())
	require.Equal(t, []string{
		`both("b", <nil>)`,
		"second",
		`outer("i", <nil>)`,
		`inner("i", <nil>)`,
		`failed("f", boom)`,
		"first",
	}, j.all())
	require.NoError(t, c.Finish(), "only the first does anything")
	require.Len(t, j.all(), 6)
}

func TestCloseAfterAPanicAndAGoexit(t *testing.T) {
	reg := quiet()
	var errs []error
	record := func(_ context.Context, v int, err error) error {
		require.Zero(t, v)
		errs = append(errs, err)
		return nil
	}
	bad := provide(reg, "bad", reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { panic(errBoom) }, Close: record})
	exits := provide(reg, "exits", reqctx.Prop[int]{Close: record, Resolve: func(context.Context) (int, error) {
		runtime.Goexit()
		return 1, nil
	}})
	c := reqctx.New(t.Context(), reg)
	require.NotNil(t, panicOf(func() { _, _ = bad.Get(c) }))
	require.NoError(t, exits.Start(c))
	require.ErrorIs(t, exits.Require(c), lazy.ErrGoexit)
	require.NoError(t, c.Finish())
	require.Len(t, errs, 2)
	require.ErrorIs(t, errs[0], lazy.ErrGoexit)
	var p *lazy.PanicError
	require.ErrorAs(t, errs[1], &p)
	require.ErrorIs(t, p, errBoom)
}

func TestCloseErrorsAreJoinedAndLogged(t *testing.T) {
	reg, log := logged()
	provide(reg, "a", reqctx.Prop[int]{Resolve: gives(1, nil), Close: func(context.Context, int, error) error { return errBoom }})
	provide(reg, "b", reqctx.Prop[int]{Resolve: gives(1, nil), Close: func(context.Context, int, error) error { panic("bang") }})
	c := reqctx.New(t.Context(), reg)
	onClose := errors.New("on close")
	c.OnClose(func() error { return onClose })
	c.OnClose(func() error { panic("pow") })
	c.OnClose(nil)
	for _, name := range []string{"a", "b"} {
		_, err := reqctx.Get(c, name)
		require.NoError(t, err)
	}
	err := c.Finish()
	require.ErrorIs(t, err, errBoom)
	require.ErrorIs(t, err, onClose)
	var p *lazy.PanicError
	require.ErrorAs(t, err, &p)
	for _, text := range []string{`closing "a": boom`, `closing "b": lazy: b panicked: bang`, `closing "OnClose": on close`, "panicked: pow", "nil pointer"} {
		require.ErrorContains(t, err, text)
	}
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), `closing \"a\": boom`)
	require.Contains(t, log.String(), `panicked: bang`)
}

// badError is an error whose methods panic, like those of a nil *fs.PathError.
type badError struct{}

func (badError) Error() string { panic("Error") }
func (badError) Is(error) bool { panic("Is") }
func (badError) Unwrap() error { panic("Unwrap") }

// Finish logs an error whose methods panic, and closes the remaining properties.
func TestErrorsWhoseMethodsPanic(t *testing.T) {
	for name, bad := range map[string]error{"bad": badError{}, "nil": (*fs.PathError)(nil)} {
		t.Run(name, func(t *testing.T) {
			reg, log := logged()
			closed := 0
			p := provide(reg, "p", reqctx.Prop[int]{
				Resolve: gives(0, bad),
				Close:   func(context.Context, int, error) error { closed++; return bad },
			})
			c := reqctx.New(t.Context(), reg)
			c.OnClose(func() error { closed++; return nil })
			_, err := p.Get(c)
			require.True(t, err == bad)
			c.OnClose(func() error { closed++; return bad })
			require.NotPanics(t, func() { _ = c.Finish() })
			require.Equal(t, 3, closed)
			require.Contains(t, log.String(), "request clean-up failed")
			require.Contains(t, log.String(), "closing")
		})
	}
}

func TestCloseOnACancelledRequest(t *testing.T) {
	reg := quiet()
	ran := false
	k := provide(reg, "k", reqctx.Prop[int]{Resolve: gives(1, nil), Close: func(ctx context.Context, _ int, _ error) error {
		ran = true
		require.NoError(t, ctx.Err())
		require.Nil(t, ctx.Done())
		require.Equal(t, "request", ctx.Value(depthKey(1)))
		require.NotNil(t, reqctx.From(ctx))
		return nil
	}})
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), depthKey(1), "request"))
	c := reqctx.New(ctx, reg)
	_, _ = k.Get(c)
	cancel()
	require.NoError(t, c.Finish())
	require.True(t, ran)
}

func TestWhatCloseMayDo(t *testing.T) {
	reg := quiet()
	var j journal
	dep := provide(reg, "dep", reqctx.Prop[string]{Resolve: gives("d", nil), Close: closes(&j, "dep")})
	other := provide(reg, "other", reqctx.Prop[string]{Resolve: gives("o", nil)})
	k := provide(reg, "k", reqctx.Prop[string]{Resolve: dep.Get, Close: func(ctx context.Context, _ string, _ error) error {
		requireGet(t, ctx, dep, "d")
		require.ErrorIs(t, other.Require(ctx), reqctx.ErrFinished, "nothing new begins")
		require.ErrorIs(t, dep.Set(ctx, "x"), reqctx.ErrFinished)
		c := reqctx.From(ctx)
		require.ErrorIs(t, c.Go("task", func(context.Context) error { panic("ran") }), reqctx.ErrFinished)
		c.OnClose(func() error { j.add("on close"); return nil })
		j.add("k")
		return nil
	}})
	c := reqctx.New(t.Context(), reg)
	_, _ = k.Get(c)
	require.NoError(t, c.Finish())
	require.Equal(t, []string{"k", "on close", `dep("d", <nil>)`}, j.all())
}

func TestEverythingAfterFinishIsErrFinished(t *testing.T) {
	for name, use := range map[string]func(c *reqctx.Host){
		"unused":  func(*reqctx.Host) {},
		"used":    func(c *reqctx.Host) { _, _ = reqctx.Get(c, "k") },
		"scoped":  func(c *reqctx.Host) { _ = c.Go("task", func(context.Context) error { return nil }) },
		"derived": func(c *reqctx.Host) { _, _ = reqctx.Get(context.WithoutCancel(c), "k") },
	} {
		t.Run(name, func(t *testing.T) {
			reg := quiet()
			k := provide(reg, "k", reqctx.Prop[int]{Resolve: gives(1, nil)})
			slow := provide(reg, "slow", reqctx.Prop[int]{Resolve: gives(1, nil), Timeout: time.Hour})
			c := reqctx.New(t.Context(), reg)
			derived, cancel := context.WithCancel(c)
			defer cancel()
			use(c)
			require.NoError(t, c.Finish())
			require.ErrorIs(t, c.Commit(http.StatusOK, http.Header{}), reqctx.ErrFinished)
			require.ErrorIs(t, c.Go("k", func(context.Context) error { panic("ran") }), reqctx.ErrFinished)
			for _, ctx := range []context.Context{c, derived, context.WithoutCancel(c)} {
				for _, k := range []reqctx.Key[int]{k, slow} {
					for use, err := range errorsOf(ctx, k) {
						require.ErrorIs(t, err, reqctx.ErrFinished, use)
						require.ErrorContains(t, err, k.Name(), use)
					}
				}
			}
			cancel()
			require.ErrorIs(t, k.Require(derived), reqctx.ErrFinished, "whatever else is over")
		})
	}
}

func TestOnCloseAfterFinish(t *testing.T) {
	reg, log := logged()
	c := reqctx.New(t.Context(), reg)
	require.NoError(t, c.Finish())
	ran := false
	c.OnClose(func() error { ran = true; return errBoom })
	require.True(t, ran)
	require.Contains(t, log.String(), `closing \"OnClose\": boom`)
	c.OnClose(func() error { panic("late bang") })
	require.Contains(t, log.String(), "late bang")
}

func TestFinishEndsResolutions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		k := provide(reg, "k", reqctx.Prop[string]{Close: closes(&j, "k"), Resolve: func(ctx context.Context) (string, error) {
			<-ctx.Done()
			<-time.After(time.Second)
			return "v", context.Cause(ctx)
		}})
		limited := provide(reg, "limited", reqctx.Prop[string]{
			Timeout: time.Hour, Close: closes(&j, "limited"), Resolve: stubborn(2*time.Second, "l"),
		})
		c := reqctx.New(t.Context(), reg)
		require.NoError(t, k.Start(c))
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := limited.Get(c)
			assert.ErrorIs(t, err, reqctx.ErrFinished, "a reader does not wait for a stubborn Resolve")
			j.add("left")
		})
		synctest.Wait()
		start := time.Now()
		require.NoError(t, c.Finish())
		require.Equal(t, 2*time.Second, time.Since(start))
		wg.Wait()
		require.Equal(t, []string{"left", `limited("l", <nil>)`, `k("v", lazy: scope closed)`}, j.all())
	})
}

func TestFinishWaitsForResolutionsOnGoroutinesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		k := provide(reg, "k", reqctx.Prop[string]{Resolve: stubborn(time.Second, "v"), Close: closes(&j, "k")})
		c := reqctx.New(t.Context(), reg)
		var wg sync.WaitGroup
		wg.Go(func() { assertGet(t, c, k, "v") })
		synctest.Wait()
		require.False(t, c.Idle())
		start := time.Now()
		require.NoError(t, c.Finish())
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, []string{`k("v", <nil>)`}, j.all())
		wg.Wait()
	})
}

// In TestLateOutcomeIsClosed, a resolution that Invalidate has detached ends after the request.
func TestLateOutcomeIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, log := logged()
		var j journal
		k := provide(reg, "k", reqctx.Prop[string]{Resolve: stubborn(time.Second, "v"), Close: func(context.Context, string, error) error {
			<-time.After(time.Second)
			j.add("closed")
			return errBoom
		}})
		c := reqctx.New(t.Context(), reg)
		derived, cancel := context.WithCancel(c)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = k.Get(c) }) // runs the resolution
		synctest.Wait()
		wg.Go(func() {
			v, err := k.Get(derived)
			assert.NoError(t, err)
			assert.Equal(t, "v", v)
			j.add("read")
		})
		synctest.Wait()
		require.NoError(t, k.Invalidate(c))
		require.NoError(t, c.Finish())
		require.Empty(t, j.all())
		wg.Wait()
		require.Equal(t, []string{"read", "closed"}, j.all(), "readers do not wait for Close")
		require.Contains(t, log.String(), `closing \"k\": boom`)
	})
}

func TestIdle(t *testing.T) {
	reg := quiet()
	plain := provide(reg, "plain", reqctx.Prop[int]{Resolve: gives(1, nil), Vary: []string{"Cookie"}})
	closing := provide(reg, "closing", reqctx.Prop[int]{Resolve: gives(1, nil), Close: func(context.Context, int, error) error { return nil }})
	c := reqctx.New(t.Context(), reg)
	require.True(t, c.Idle())
	_, _ = plain.Get(c)
	require.NoError(t, closing.Set(c, 1))
	require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
	require.True(t, c.Idle())
	require.NoError(t, closing.Invalidate(c))
	_, _ = closing.Get(c)
	require.False(t, c.Idle())
	require.NoError(t, c.Finish())
	require.True(t, c.Idle())

	c = reqctx.New(t.Context(), reg)
	c.OnClose(func() error { return nil })
	require.False(t, c.Idle())
	require.NoError(t, c.Finish())
}

func TestCloserThatEndsItsGoroutineLeavesNoOtherOut(t *testing.T) {
	reg, log := logged()
	c := reqctx.New(t.Context(), reg)
	var closed []string
	c.OnClose(func() error { closed = append(closed, "first"); return errors.New("first failed") })
	c.OnClose(func() error { runtime.Goexit(); return nil })
	c.OnClose(func() error { closed = append(closed, "last"); return errors.New("last failed") })
	ended := make(chan bool)
	go func() {
		defer close(ended)
		_ = c.Finish()
	}()
	<-ended
	require.Equal(t, []string{"last", "first"}, closed)
	for _, err := range []string{"last failed", "first failed", lazy.ErrGoexit.Error()} {
		require.Contains(t, log.String(), err)
	}
}
