package reqctx_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

// loud returns a property whose functions all write to j.
func loud(j *journal) reqctx.Prop[string] {
	return reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { j.add("resolve"); return "real", nil },
		Store:   func(context.Context, string) error { j.add("store"); return nil },
		Commit:  func(context.Context, string, int, http.Header) error { j.add("commit"); return nil },
		Close:   func(context.Context, string, error) error { j.add("close"); return nil },
		Vary:    []string{"Cookie"},
	}
}

func TestPresetStandsForTheResultOfResolve(t *testing.T) {
	var j journal
	reg := quiet()
	user := provide(reg, "user", loud(&j))
	greeting := provide(reg, "greeting", reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		name, err := user.Get(ctx)
		return "hello " + name, err
	}})
	ctx, cancel := context.WithCancel(reqctx.Preset(t.Context(), user, "fake"))
	defer cancel()
	c := reqctx.New(ctx, reg)
	require.NoError(t, c.PresetErr())

	require.NoError(t, user.Start(c))
	require.NoError(t, reqctx.Resolve(c, "user", "greeting"))
	byName, err := reqctx.Get(c, "user")
	require.NoError(t, err)
	require.Equal(t, "fake", byName)
	requireGet(t, c, greeting, "hello fake")

	require.NoError(t, user.Set(c, "set"))
	requireGet(t, c, user, "set")
	require.NoError(t, user.Invalidate(c))
	requireGet(t, c, user, "fake")

	h := http.Header{}
	require.NoError(t, c.Commit(http.StatusOK, h))
	require.Empty(t, h, "no Vary")
	require.ErrorIs(t, user.Set(c, "late"), reqctx.ErrCommitted)
	require.NoError(t, c.Finish())
	require.ErrorIs(t, user.Require(c), reqctx.ErrFinished)
	require.Equal(t, []string{"store", "commit"}, j.all())
}

func TestPresetsArePerRequestAndTheLaterCounts(t *testing.T) {
	var j journal
	reg := quiet()
	user := provide(reg, "user", loud(&j))
	flag := provide(reg, "flag", reqctx.Prop[bool]{})
	ctx := reqctx.Preset(t.Context(), user, "early")
	ctx = reqctx.Preset(ctx, flag, true)
	late := reqctx.Preset(ctx, user, "late")
	for _, c := range []struct {
		ctx  context.Context
		want string
	}{{late, "late"}, {ctx, "early"}, {t.Context(), "real"}} {
		r := reqctx.New(c.ctx, reg)
		for range 2 {
			requireGet(t, r, user, c.want)
		}
		on, err := flag.Get(r)
		require.Equal(t, c.want != "real", on)
		require.Equal(t, c.want != "real", err == nil)
		require.NoError(t, r.PresetErr())
		require.NoError(t, r.Finish())
	}
	require.Equal(t, []string{"resolve", "close"}, j.all(), "of the one request without presets")
}

func TestPresetOfAPropertyThatIsNotProvided(t *testing.T) {
	reg := quiet()
	provide(reg, "user", reqctx.Prop[string]{})
	ctx := reqctx.Preset(t.Context(), reqctx.NewKey[string]("user"), "other key")
	ctx = reqctx.Preset(ctx, reqctx.NewKey[int]("nothing"), 1)
	ctx = reqctx.Preset(ctx, reqctx.Key[int]{}, 1)
	c := requestOf(t, ctx, reg)
	err := c.PresetErr()
	require.ErrorIs(t, err, reqctx.ErrNoProperty)
	require.EqualError(t, err, `reqctx: preset of "": reqctx: no such property: "" (provided: user): call Provide first
reqctx: preset of "nothing": reqctx: no such property: "nothing" (provided: user): call Provide first
reqctx: preset of "user": reqctx: no such property: "user" is provided with another key: use the one from Provide`)
	_, err = reqctx.Get(c, "user")
	require.ErrorIs(t, err, reqctx.ErrNoValue, "the others are as they were")
}

// A preset reaches the context whose registry has the property: the middleware's or the server's.
func TestPresetsReachTheContextThatHasTheProperty(t *testing.T) {
	outer, inner := quiet(), quiet()
	a := provide(outer, "a", reqctx.Prop[int]{Resolve: gives(0, errors.New("resolved"))})
	b := provide(inner, "b", reqctx.Prop[int]{Resolve: gives(0, errors.New("resolved"))})
	ctx := reqctx.Preset(reqctx.Preset(t.Context(), a, 1), b, 2)
	c := requestOf(t, ctx, outer)
	require.ErrorIs(t, c.PresetErr(), reqctx.ErrNoProperty)
	in := requestOf(t, c, inner)
	require.NoError(t, in.PresetErr())
	for key, want := range map[reqctx.Key[int]]int{a: 1, b: 2} {
		requireGet(t, in, key, want)
	}
}

// An OnClose function that was registered first still sees the states of all properties.
func TestPropsOfAWholeRequest(t *testing.T) {
	reg := quiet()
	fake := provide(reg, "fake", reqctx.Prop[int]{Resolve: gives(1, nil)})
	read := provide(reg, "read", reqctx.Prop[int]{Resolve: gives(1, nil)})
	late := provide(reg, "late", reqctx.Prop[int]{Resolve: gives(1, nil)})
	provide(reg, "unread", reqctx.Prop[int]{Resolve: gives(1, nil)})
	c := reqctx.New(reqctx.Preset(t.Context(), fake, 2), reg)
	states := map[string]reqctx.State{}
	c.OnClose(func() error {
		for name, info := range c.Props() {
			states[name] = info.State
		}
		return nil
	})
	c.OnClose(func() error { return errors.Join(late.Start(c), read.Invalidate(c)) }) // the request is closing
	for _, key := range []reqctx.Key[int]{fake, read} {
		require.NoError(t, key.Require(c))
	}
	require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
	require.ErrorIs(t, c.Finish(), reqctx.ErrFinished)
	require.Equal(t, map[string]reqctx.State{"fake": reqctx.Assigned, "read": reqctx.Resolved,
		"late": reqctx.Unused, "unread": reqctx.Unused}, states)
}
