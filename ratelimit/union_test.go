package ratelimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNewUnionRefuses(t *testing.T) {
	m, r := newMemory(t, MemoryOptions{}), Must(Throttle(time.Second))
	for want, c := range map[string]struct {
		store Store
		rules []Rule
	}{
		"store is nil":                             {nil, []Rule{r}},
		"no rules":                                 {m, nil},
		"rules[1] is the zero Rule":                {m, []Rule{r, {}}},
		"rules[0] has no limit":                    {m, []Rule{Must(Buckets(BucketOptions{}))}},
		"rules[1] shares its counter with another": {m, []Rule{r, Must(r.WithLimit(3))}},
	} {
		_, err := NewUnion(c.store, c.rules...)
		require.ErrorContains(t, err, want)
	}
}

func TestUnion(t *testing.T) {
	h, ctx := newHand(), t.Context()
	second := Must(GCRA(GCRAOptions{Limit: 3, Per: time.Second}))
	day := Must(SlidingLog(LogOptions{Limit: 5, Per: 24 * time.Hour}))
	u, err := NewUnion(newMemory(t, MemoryOptions{Clock: h.clock}), second, day)
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
	require.Equal(t, []Rule{second}, u.Denied(v))
	require.Equal(t, 333334*time.Microsecond, v.RetryAfter)
	require.EqualValues(t, 3, v.Limit)
	require.Equal(t, 24*time.Hour, v.ResetAfter)

	h.now = h.now.Add(time.Second)
	v, err = u.Take(ctx, "k", 3)
	require.NoError(t, err)
	require.Equal(t, []Rule{day}, u.Denied(v))
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
	_, err = u.Refund(ctx, "k", Verdict{})
	require.ErrorIs(t, err, ErrOp)
	_, err = u.Take(ctx, "k", 4)
	require.ErrorIs(t, err, ErrTooLarge)

	_, err = u.Take(ctx, "k", 3)
	require.NoError(t, err)
	require.NoError(t, u.Reset(ctx, "k"))
	v, err = u.Peek(ctx, "k", 1)
	require.NoError(t, err)
	require.EqualValues(t, 3, v.Remaining)
}
