package reqctx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

// A context within another has the properties of both, and its own of a name that both have.
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
