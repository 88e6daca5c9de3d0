package reqctx_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

func TestOnlyItsKeyReachesAPrivateProperty(t *testing.T) {
	reg := quiet()
	private := provide(reg, "private", reqctx.Prop[int]{Private: true, Resolve: gives(1, nil)})
	preset := provide(reg, "preset", reqctx.Prop[int]{Private: true, Resolve: gives(1, nil)})
	provide(reg, "public", reqctx.Prop[int]{Resolve: gives(1, nil)})
	c := requestOf(t, reqctx.Preset(t.Context(), preset, 2), reg)
	for _, name := range []string{"private", "preset"} {
		_, err := reqctx.Get(c, name)
		require.EqualError(t, err, `reqctx: no such property: "`+name+`" (provided: public)`)
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

// A property of that name in a context around it is another one.
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
