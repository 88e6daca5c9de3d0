package reqctx_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

// notes returns a Commit function that records its value in j.
func notes(j *journal) func(context.Context, string, int, http.Header) error {
	return func(_ context.Context, v string, _ int, h http.Header) error {
		j.add(v)
		h.Add("Saved", v)
		return nil
	}
}

func TestCommitInOrderOfResolution(t *testing.T) {
	reg := quiet()
	var j journal
	inner := provide(reg, "inner", reqctx.Prop[string]{Resolve: gives("inner", nil), Commit: notes(&j)})
	outer := provide(reg, "outer", reqctx.Prop[string]{Commit: notes(&j), Resolve: func(ctx context.Context) (string, error) {
		_, err := inner.Get(ctx)
		return "outer", err
	}})
	set := provide(reg, "set", reqctx.Prop[string]{Commit: notes(&j)})
	failed := provide(reg, "failed", reqctx.Prop[string]{Resolve: gives("failed", errBoom), Commit: notes(&j)})
	bad := provide(reg, "bad", reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { panic(1) }, Commit: notes(&j)})
	gone := provide(reg, "gone", reqctx.Prop[string]{Resolve: gives("gone", nil), Commit: notes(&j)})
	provide(reg, "unread", reqctx.Prop[string]{Resolve: gives("unread", nil), Commit: notes(&j)})

	c := request(t, reg)
	require.NoError(t, set.Set(c, "overtaken"))
	c.OnClose(func() error { return nil })
	_, _ = outer.Get(c)
	_, _ = failed.Get(c)
	panicOf(func() { _, _ = bad.Get(c) })
	_, _ = gone.Get(c)
	require.NoError(t, gone.Invalidate(c))
	require.NoError(t, set.Set(c, "set"))

	h := http.Header{}
	require.False(t, c.Committed())
	require.NoError(t, c.Commit(http.StatusOK, h))
	require.True(t, c.Committed())
	want := []string{"inner", "outer", "set"}
	require.Equal(t, want, j.all())
	require.Equal(t, want, h["Saved"])

	require.NoError(t, c.Commit(http.StatusOK, h))
	requireGet(t, c, gone, "gone")
	require.Equal(t, want, j.all(), "committing does not")
}

func TestCommitThatResolvesMore(t *testing.T) {
	reg := quiet()
	var j journal
	third := provide(reg, "third", reqctx.Prop[string]{Resolve: gives("third", nil), Commit: notes(&j), Vary: []string{"Accept"}})
	second := provide(reg, "second", reqctx.Prop[string]{
		Resolve: gives("second", nil),
		Commit: func(ctx context.Context, v string, status int, h http.Header) error {
			_, err := third.Get(ctx)
			return errors.Join(err, notes(&j)(ctx, v, status, h))
		},
	})
	first := provide(reg, "first", reqctx.Prop[string]{
		Resolve: gives("first", nil),
		Commit: func(ctx context.Context, v string, status int, h http.Header) error {
			require.ErrorIs(t, second.Set(ctx, "x"), reqctx.ErrCommitted)
			require.True(t, reqctx.From(ctx).Committed())
			_, err := second.Get(ctx)
			return errors.Join(err, notes(&j)(ctx, v, status, h))
		},
	})
	c := request(t, reg)
	_, _ = first.Get(c)
	h := http.Header{}
	require.NoError(t, c.Commit(http.StatusOK, h))
	require.Equal(t, []string{"first", "second", "third"}, j.all())
	require.Equal(t, []string{"Accept"}, h["Vary"])
}

func TestCommitErrorsAreJoinedAndKept(t *testing.T) {
	reg := quiet()
	other := errors.New("other")
	var j journal
	fails := func(err error) reqctx.Prop[string] {
		return reqctx.Prop[string]{Resolve: gives("", nil), Commit: func(context.Context, string, int, http.Header) error {
			j.add(err.Error())
			return err
		}}
	}
	provide(reg, "a", fails(errBoom))
	provide(reg, "b", reqctx.Prop[string]{Resolve: gives("fine", nil), Commit: notes(&j)})
	provide(reg, "c", fails(other))
	c := reqctx.New(t.Context(), reg)
	for _, name := range []string{"a", "b", "c"} {
		_, err := reqctx.Get(c, name)
		require.NoError(t, err)
	}
	err := c.Commit(http.StatusOK, http.Header{})
	require.ErrorIs(t, err, errBoom)
	require.ErrorIs(t, err, other)
	require.EqualError(t, err, "reqctx: committing \"a\": boom\nreqctx: committing \"c\": other")
	require.Equal(t, []string{"boom", "fine", "other"}, j.all())
	require.Equal(t, err, c.Commit(http.StatusOK, http.Header{}))
	require.NoError(t, c.Finish())
	require.Equal(t, err, c.Commit(http.StatusOK, http.Header{}))
}

func TestSecondCommitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		k := provide(reg, "k", reqctx.Prop[int]{Resolve: gives(1, nil), Commit: func(context.Context, int, int, http.Header) error {
			<-time.After(time.Second)
			return errBoom
		}})
		c := request(t, reg)
		_, _ = k.Get(c)
		start := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				assert.ErrorIs(t, c.Commit(http.StatusOK, http.Header{}), errBoom)
				assert.Equal(t, time.Second, time.Since(start))
			})
		}
		synctest.Wait()
		require.True(t, c.Committed())
		require.False(t, c.Idle())
		require.ErrorIs(t, k.Set(c, 2), reqctx.ErrCommitted, "while it is under way, too")
		wg.Wait()
	})
}

func TestCommitThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		closed := false
		k := provide(reg, "k", reqctx.Prop[int]{
			Resolve: gives(1, nil),
			Commit: func(context.Context, int, int, http.Header) error {
				<-time.After(time.Second)
				panic(errBoom)
			},
			Close: func(context.Context, int, error) error { closed = true; return nil },
		})
		c := reqctx.New(t.Context(), reg)
		_, _ = k.Get(c)
		var wg sync.WaitGroup
		wg.Go(func() { assert.Equal(t, errBoom, panicOf(func() { _ = c.Commit(http.StatusOK, http.Header{}) })) })
		synctest.Wait()
		const text = "reqctx: a Commit function panicked"
		require.EqualError(t, c.Commit(http.StatusOK, http.Header{}), text, "a waiting Commit fails too")
		wg.Wait()
		require.EqualError(t, c.Commit(http.StatusOK, http.Header{}), text)
		require.NoError(t, c.Finish())
		require.True(t, closed)
	})
}

func TestFinishWaitsForCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		var j journal
		more := provide(reg, "more", reqctx.Prop[string]{
			Resolve: gives("more", nil),
			Commit:  notes(&j),
			Close:   func(context.Context, string, error) error { j.add("close more"); return nil },
		})
		k := provide(reg, "k", reqctx.Prop[string]{
			Resolve: gives("k", nil),
			Commit: func(ctx context.Context, v string, status int, h http.Header) error {
				<-time.After(time.Second)
				_, err := more.Get(ctx)
				return errors.Join(err, notes(&j)(ctx, v, status, h))
			},
			Close: func(context.Context, string, error) error { j.add("close k"); return nil },
		})
		c := reqctx.New(t.Context(), reg)
		_, _ = k.Get(c)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, c.Commit(http.StatusOK, http.Header{})) })
		synctest.Wait()
		wg.Go(func() { assert.NoError(t, c.Finish()) })
		require.NoError(t, c.Finish())
		wg.Wait()
		require.Equal(t, []string{"k", "more", "close more", "close k"}, j.all())
	})
}

func TestVary(t *testing.T) {
	cookie := reqctx.Prop[int]{Resolve: gives(1, nil), Vary: []string{"Cookie", "Authorization"}}
	failing := cookie
	failing.Resolve = gives(0, errBoom)
	panicking := cookie
	panicking.Resolve = func(context.Context) (int, error) { panic(errBoom) }
	every := cookie
	every.Vary = []string{"*"}
	var k reqctx.Key[int]
	get := func(c *reqctx.Host) { panicOf(func() { _, _ = k.Get(c) }) }
	set := func(c *reqctx.Host) { require.NoError(t, k.Set(c, 2)) }
	for name, tc := range map[string]struct {
		prop   reqctx.Prop[int]
		do     func(c *reqctx.Host)
		before []string
		after  []string
	}{
		"unread":          {prop: cookie, do: func(*reqctx.Host) {}},
		"only set":        {prop: cookie, do: func(c *reqctx.Host) { set(c); get(c) }},
		"read":            {prop: cookie, do: get, after: []string{"Cookie", "Authorization"}},
		"read and set":    {prop: cookie, do: func(c *reqctx.Host) { get(c); set(c) }, after: []string{"Cookie", "Authorization"}},
		"invalidated":     {prop: cookie, do: func(c *reqctx.Host) { get(c); _ = k.Invalidate(c) }, after: []string{"Cookie", "Authorization"}},
		"failed":          {prop: failing, do: get, after: []string{"Cookie", "Authorization"}},
		"panicked":        {prop: panicking, do: get, after: []string{"Cookie", "Authorization"}},
		"already there":   {prop: cookie, do: get, before: []string{"Accept, cookie ,Origin"}, after: []string{"Accept, cookie ,Origin", "Authorization"}},
		"part of a word":  {prop: cookie, do: get, before: []string{"Cookie2"}, after: []string{"Cookie2", "Cookie", "Authorization"}},
		"star there":      {prop: cookie, do: get, before: []string{"Accept", " * "}, after: []string{"Accept", " * "}},
		"star":            {prop: every, do: get, before: []string{"Accept"}, after: []string{"Accept", "*"}},
		"star there, too": {prop: every, do: get, before: []string{"*"}, after: []string{"*"}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := quiet()
			k = provide(reg, "k", tc.prop)
			c := request(t, reg)
			tc.do(c)
			h := http.Header{}
			if tc.before != nil {
				h["Vary"] = tc.before
			}
			require.NoError(t, c.Commit(http.StatusOK, h))
			require.Equal(t, strings.Join(tc.after, "|"), strings.Join(h["Vary"], "|"))
		})
	}
}

func TestVaryOfAResolutionThatWasOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		k := provide(reg, "k", reqctx.Prop[int]{Resolve: takes(time.Second, 1), Vary: []string{"Cookie"}})
		c := request(t, reg)
		var wg sync.WaitGroup
		wg.Go(func() { assertGet(t, c, k, 1) })
		synctest.Wait()
		require.NoError(t, k.Invalidate(c))
		wg.Wait()
		h := http.Header{}
		require.NoError(t, c.Commit(http.StatusOK, h))
		require.Equal(t, []string{"Cookie"}, h["Vary"], "its reader has seen it")
	})
}

func TestCommitRemovesTheCookiesOfAFailure(t *testing.T) {
	reg := quiet()
	good, bad := provide(reg, "good", reqctx.Prop[int]{
		Resolve: gives(1, nil),
		Commit:  func(_ context.Context, _, _ int, h http.Header) error { h.Add("Set-Cookie", "good=1"); return nil },
	}), provide(reg, "bad", reqctx.Prop[int]{
		Resolve: gives(1, nil),
		Commit: func(_ context.Context, _, _ int, h http.Header) error {
			h.Add("Set-Cookie", "bad=1")
			h.Add("Set-Cookie", "bad=2")
			return errors.New("down")
		},
	})
	c := request(t, reg)
	h := http.Header{"Set-Cookie": {"mine=1"}}
	for _, k := range []reqctx.Key[int]{bad, good} {
		require.NoError(t, k.Require(c))
	}
	require.ErrorContains(t, c.Commit(http.StatusOK, h), `"bad": down`)
	require.Equal(t, []string{"mine=1", "good=1"}, h["Set-Cookie"])
}

// The request's list has no outcomes that are not kept and have nothing to close. Otherwise, the list would grow with
// each attempt.
func TestOutcomeThatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := quiet()
		own := provide(reg, "own", reqctx.Prop[int]{Resolve: gives(0, context.Canceled)})
		late := provide(reg, "late", reqctx.Prop[int]{Timeout: time.Second, Resolve: stubborn(time.Minute, 1)})
		varied := provide(reg, "varied", reqctx.Prop[int]{Vary: []string{"Cookie"}, Resolve: gives(0, context.Canceled)})
		c := reqctx.New(t.Context(), reg)
		require.ErrorIs(t, own.Require(c), context.Canceled)
		require.ErrorIs(t, late.Require(c), context.DeadlineExceeded)
		<-time.After(time.Hour)
		require.True(t, c.CommitUnused())
		require.NoError(t, c.Finish())

		c = reqctx.New(t.Context(), reg)
		require.ErrorIs(t, varied.Require(c), context.Canceled)
		header := http.Header{}
		require.NoError(t, c.Commit(http.StatusOK, header))
		require.Equal(t, http.Header{"Vary": {"Cookie"}}, header, "the error depends on it too")
		require.NoError(t, c.Finish())
	})
}

func TestCommitUnused(t *testing.T) {
	reg := quiet()
	k := provide(reg, "k", reqctx.Prop[int]{Resolve: gives(1, nil)})
	c := reqctx.New(t.Context(), reg)
	require.True(t, c.CommitUnused())
	require.True(t, c.Committed())
	require.False(t, c.CommitUnused(), "once")
	require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
	require.ErrorIs(t, k.Set(c, 2), reqctx.ErrCommitted)
	require.NoError(t, c.Finish())
	require.False(t, c.CommitUnused())

	c = reqctx.New(t.Context(), reg)
	require.NoError(t, k.Require(c))
	require.False(t, c.CommitUnused(), "there is something to commit")
	require.False(t, c.Committed())
	require.NoError(t, c.Finish())

	c = reqctx.New(t.Context(), reg)
	require.NoError(t, c.Finish())
	require.False(t, c.CommitUnused(), "the request is over")
	require.True(t, c.Committed(), "nothing can be set")
	require.ErrorIs(t, c.Commit(http.StatusOK, http.Header{}), reqctx.ErrFinished)
}

// The context of a Commit function has the values of the handler's context, and ends with the request.
func TestCommitGetsTheHandlersValues(t *testing.T) {
	type key struct{}
	reg := quiet()
	var saved context.Context
	k := provide(reg, "k", reqctx.Prop[int]{Commit: func(ctx context.Context, _, status int, _ http.Header) error {
		require.Equal(t, http.StatusNotFound, status)
		saved = ctx
		return nil
	}})
	commit := func(handler func(c *reqctx.Host) context.Context) *reqctx.Host {
		c := reqctx.New(t.Context(), reg)
		c.SetRequest(new(http.Request).WithContext(handler(c)))
		require.NoError(t, k.Set(c, 1))
		require.NoError(t, c.Commit(http.StatusNotFound, http.Header{}))
		return c
	}
	c := commit(func(c *reqctx.Host) context.Context {
		ctx, cancel := context.WithCancel(context.WithValue(c, key{}, 1))
		cancel() // as a middleware does that responds itself
		return ctx
	})
	require.Equal(t, 1, saved.Value(key{}))
	require.Same(t, &c.Context, reqctx.From(saved))
	require.NoError(t, saved.Err())

	c = commit(func(c *reqctx.Host) context.Context { return &c.Context })
	require.Equal(t, context.Context(&c.Context), saved)
	c = commit(func(*reqctx.Host) context.Context { return t.Context() }) // as if a middleware replaced the context
	require.Equal(t, context.Context(&c.Context), saved)
}
