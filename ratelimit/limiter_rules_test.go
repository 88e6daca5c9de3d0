package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

func TestNewLimiterRefusesRules(t *testing.T) {
	m, r := newStore(t, memstore.Options{}), ratelimit.Throttle(time.Second)
	for want, c := range map[string]struct {
		store ratelimit.Store
		rules []ratelimit.Rule
	}{
		"store is nil":                                {nil, []ratelimit.Rule{r}},
		"no rules":                                    {m, nil},
		"rules[1]: Rule is the zero Rule":             {m, []ratelimit.Rule{r, {}}},
		"rules[1] has no limit":                       {m, []ratelimit.Rule{r, ratelimit.Buckets(ratelimit.BucketOptions{})}},
		`rules[1] has the same name as another, "1s"`: {m, []ratelimit.Rule{r, r.WithLimit(3)}},
		"PerMinute.Limit is 0":                        {m, []ratelimit.Rule{r, ratelimit.PerMinute(0)}},
	} {
		_, err := ratelimit.NewLimiter(c.store, c.rules...)
		require.ErrorContains(t, err, want)
	}
}

func TestLimiterOfSeveralRules(t *testing.T) {
	h, ctx := newHand(), t.Context()
	second := ratelimit.GCRA(3, time.Second)
	day := ratelimit.SlidingLog(5, 24*time.Hour)
	u, err := ratelimit.NewLimiter(newStore(t, memstore.Options{Clock: h.clock}), second, day)
	require.NoError(t, err)

	first, err := u.Take(ctx, "k", 3)
	require.NoError(t, err)
	require.True(t, first.Allowed)
	require.Empty(t, denied(u, first))
	require.Zero(t, first.Remaining)
	require.Zero(t, first.Receipt)
	require.Equal(t, []int64{0, 2}, []int64{first.Each()[0].Remaining, first.Each()[1].Remaining})

	v, err := u.Take(ctx, "k", 1)
	require.NoError(t, err)
	require.False(t, v.Allowed)
	require.Equal(t, []ratelimit.Rule{second}, denied(u, v))
	require.Equal(t, 333334*time.Microsecond, v.RetryAfter)
	require.EqualValues(t, 3, v.Limit)
	require.Equal(t, 24*time.Hour, v.ResetAfter)

	h.now = h.now.Add(time.Second)
	v, err = u.Take(ctx, "k", 3)
	require.NoError(t, err)
	require.Equal(t, []ratelimit.Rule{day}, denied(u, v))
	require.EqualValues(t, 2, v.Remaining)
	require.EqualValues(t, 5, v.Limit)
	v, err = u.Peek(ctx, "k", 3)
	require.NoError(t, err)
	require.EqualValues(t, 3, v.Each()[0].Remaining, "a denial charges nothing")

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
	require.EqualValues(t, 5, v.Each()[1].Remaining, "but the log gave it back")
	_, err = u.Refund(ctx, "k", ratelimit.Result{})
	require.ErrorIs(t, err, ratelimit.ErrOp)
	_, err = u.Take(ctx, "k", 4)
	require.ErrorIs(t, err, ratelimit.ErrTooLarge)
	n, err := u.AddCount(ctx, "j", 2, 0)
	require.ErrorIs(t, err, ratelimit.ErrNoCount, "of the first rule")
	require.Zero(t, n)
	v, err = u.Add(ctx, "j", 2)
	require.NoError(t, err)
	require.EqualValues(t, 1, v.Remaining)
	require.EqualValues(t, 2, v.Each()[1].Count)

	_, err = u.Take(ctx, "k", 3)
	require.NoError(t, err)
	require.NoError(t, u.Reset(ctx, "k"))
	v, err = u.Peek(ctx, "k", 1)
	require.NoError(t, err)
	require.EqualValues(t, 3, v.Remaining)
}

// The interval of AddCount is that of the first rule, and may be longer than the others' spans.
func TestAddCountOfTheFirstRule(t *testing.T) {
	ctx := t.Context()
	l, err := ratelimit.NewLimiter(newStore(t, memstore.Options{}), ratelimit.PerHour(100), ratelimit.PerSecond(10))
	require.NoError(t, err)
	for _, want := range []int64{3, 6} {
		n, err := l.AddCount(ctx, "k", 3, time.Hour)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
}

// denied returns the rules that denied.
func denied(l *ratelimit.Limiter, res ratelimit.Result) (rules []ratelimit.Rule) {
	for i, r := range res.Each() {
		if r.Violated {
			rules = append(rules, l.Rules()[i])
		}
	}
	return rules
}

// A peek is allowed if all rules allow it, whichever comes first.
func TestLimiterPeeksBySeveralRules(t *testing.T) {
	wide := ratelimit.GCRA(3, time.Hour)
	narrow := ratelimit.Throttle(time.Hour).WithName("narrow")
	for _, rules := range [][]ratelimit.Rule{{wide, narrow}, {narrow, wide}} {
		u, err := ratelimit.NewLimiter(newStore(t, memstore.Options{}), rules...)
		require.NoError(t, err)
		_, err = u.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		v, err := u.Peek(t.Context(), "k", 1)
		require.NoError(t, err)
		require.False(t, v.Allowed)
		require.Equal(t, []ratelimit.Rule{narrow}, denied(u, v))
	}
}
