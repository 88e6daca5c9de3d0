package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

func TestNewUnionRefuses(t *testing.T) {
	m, r := newStore(t, memstore.Options{}), ratelimit.Must(ratelimit.Throttle(time.Second))
	for want, c := range map[string]struct {
		store ratelimit.Store
		rules []ratelimit.Rule
	}{
		"store is nil":                             {nil, []ratelimit.Rule{r}},
		"no rules":                                 {m, nil},
		"rules[1] is the zero Rule":                {m, []ratelimit.Rule{r, {}}},
		"rules[0] has no limit":                    {m, []ratelimit.Rule{ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{}))}},
		"rules[1] shares its counter with another": {m, []ratelimit.Rule{r, ratelimit.Must(r.WithLimit(3))}},
	} {
		_, err := ratelimit.NewUnion(c.store, c.rules...)
		require.ErrorContains(t, err, want)
	}
}

func TestUnion(t *testing.T) {
	h, ctx := newHand(), t.Context()
	second := ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 3, Per: time.Second}))
	day := ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 5, Per: 24 * time.Hour}))
	u, err := ratelimit.NewUnion(newStore(t, memstore.Options{Clock: h.clock}), second, day)
	require.NoError(t, err)

	first, err := u.Take(ctx, "k", 3)
	require.NoError(t, err)
	require.True(t, first.Allowed)
	require.Empty(t, u.Denied(first))
	require.Zero(t, first.Remaining)
	require.Zero(t, first.Receipt)
	require.Equal(t, []int64{0, 2}, []int64{first.Each[0].Remaining, first.Each[1].Remaining})

	v, err := u.Take(ctx, "k", 1)
	require.NoError(t, err)
	require.False(t, v.Allowed)
	require.Equal(t, []ratelimit.Rule{second}, u.Denied(v))
	require.Equal(t, 333334*time.Microsecond, v.RetryAfter)
	require.EqualValues(t, 3, v.Limit)
	require.Equal(t, 24*time.Hour, v.ResetAfter)

	h.now = h.now.Add(time.Second)
	v, err = u.Take(ctx, "k", 3)
	require.NoError(t, err)
	require.Equal(t, []ratelimit.Rule{day}, u.Denied(v))
	require.EqualValues(t, 2, v.Remaining)
	require.EqualValues(t, 5, v.Limit)
	v, err = u.Peek(ctx, "k", 3)
	require.NoError(t, err)
	require.EqualValues(t, 3, v.Each[0].Remaining, "a denial charges nothing")

	last, err := u.Take(ctx, "k", 2)
	require.NoError(t, err)
	require.True(t, last.Allowed)
	ok, err := u.Refund(ctx, "k", last)
	require.NoError(t, err)
	require.True(t, ok)
	ok, err = u.Refund(ctx, "k", first)
	require.NoError(t, err)
	require.False(t, ok, "the GCRA was charged since")
	v, err = u.Peek(ctx, "k", 3)
	require.NoError(t, err)
	require.EqualValues(t, 5, v.Each[1].Remaining, "but the log gave it back")
	_, err = u.Refund(ctx, "k", ratelimit.Verdict{})
	require.ErrorIs(t, err, ratelimit.ErrOp)
	_, err = u.Take(ctx, "k", 4)
	require.ErrorIs(t, err, ratelimit.ErrTooLarge)

	_, err = u.Take(ctx, "k", 3)
	require.NoError(t, err)
	require.NoError(t, u.Reset(ctx, "k"))
	v, err = u.Peek(ctx, "k", 1)
	require.NoError(t, err)
	require.EqualValues(t, 3, v.Remaining)
}

// A peek is allowed if all rules allow it, whichever comes first.
func TestUnionPeek(t *testing.T) {
	wide := ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 3, Per: time.Hour}))
	narrow := ratelimit.Must(ratelimit.Throttle(time.Hour))
	for _, rules := range [][]ratelimit.Rule{{wide, narrow}, {narrow, wide}} {
		u, err := ratelimit.NewUnion(newStore(t, memstore.Options{}), rules...)
		require.NoError(t, err)
		_, err = u.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		v, err := u.Peek(t.Context(), "k", 1)
		require.NoError(t, err)
		require.False(t, v.Allowed)
		require.Equal(t, []ratelimit.Rule{narrow}, u.Denied(v))
	}
}
