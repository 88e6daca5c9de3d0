package reqctx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

// A nested context has its own properties and those of the outer context. If both have a name, its own property counts.
func TestContextWithinAnother(t *testing.T) {
	outer, inner := quiet(), quiet()
	user, both := reqctx.NewKey[string]("user"), reqctx.NewKey[string]("both")
	resolve := func(v string) reqctx.Prop[string] {
		return reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { return v, nil }}
	}
	reqctx.Provide(outer, user, resolve("ada"))
	reqctx.Provide(outer, both, resolve("outer"))
	reqctx.Provide(inner, both, resolve("inner"))
	c := request(t, outer)
	in := reqctx.New(context.WithValue(c, t, t), inner)

	require.NoError(t, reqctx.Resolve(in, "user", "both"))
	for key, want := range map[reqctx.Key[string]]string{user: "ada", both: "inner"} {
		requireGet(t, in, key, want)
		byName, err := reqctx.Get(in, key.Name())
		require.NoError(t, err)
		require.Equal(t, want, byName)
	}
	require.NoError(t, user.Set(in, "bob"))
	got, _, ok := user.Peek(c)
	require.True(t, ok, "there is one of it")
	require.Equal(t, "bob", got)
	_, _, ok = both.Peek(c)
	require.False(t, ok)
	_, err := reqctx.Get(in, "nothing")
	require.ErrorIs(t, err, reqctx.ErrNoProperty)

	require.NoError(t, in.Finish())
	require.ErrorIs(t, both.Require(in), reqctx.ErrFinished)
	require.NoError(t, user.Set(c, "eve"), "the outer request goes on")
}

func TestOnlyItsKeyReachesAPrivateProperty(t *testing.T) {
	reg := quiet()
	private := provide(reg, "private", reqctx.Prop[int]{Private: true, Resolve: gives(1, nil)})
	preset := provide(reg, "preset", reqctx.Prop[int]{Private: true, Resolve: gives(1, nil)})
	provide(reg, "public", reqctx.Prop[int]{Resolve: gives(1, nil)})
	c := requestOf(t, reqctx.Preset(t.Context(), preset, 2), reg)
	for _, name := range []string{"private", "preset"} {
		_, err := reqctx.Get(c, name)
		require.EqualError(t, err, `reqctx: no such property: "`+name+`" (provided: public): call Provide first`)
		require.ErrorIs(t, reqctx.Set(c, name, 3), reqctx.ErrNoProperty)
		require.ErrorIs(t, reqctx.Resolve(c, "public", name), reqctx.ErrNoProperty)
	}
	require.True(t, infoOf(t, c, "private").Private)
	require.Equal(t, reqctx.Info{}, infoOf(t, c, "public"), "nothing was resolved")

	for k, want := range map[reqctx.Key[int]]int{private: 1, preset: 2} {
		requireGet(t, c, k, want)
	}
	require.NoError(t, private.Set(c, 4))
}

// A private property does not hide the outer context's property with the same name.
func TestPrivatePropertyInNestedContext(t *testing.T) {
	outerReg, innerReg := quiet(), quiet()
	provide(outerReg, "user", reqctx.Prop[string]{Resolve: gives("outer", nil)})
	private := provide(innerReg, "user", reqctx.Prop[string]{Private: true, Resolve: gives("inner", nil)})
	outer := request(t, outerReg)
	inner := reqctx.New(outer, innerReg)
	v, err := reqctx.Get(inner, "user")
	require.NoError(t, err)
	require.Equal(t, "outer", v)
	requireGet(t, inner, private, "inner")
	require.NoError(t, inner.Finish())
}
