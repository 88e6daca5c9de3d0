package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

func TestLimiter(t *testing.T) {
	h, ctx := newHand(), t.Context()
	l := newLimiter(t, newStore(t, memstore.Options{Clock: h.clock}), coarse(10, time.Minute))

	first := must(l.Take(ctx, "k", 3))
	require.True(t, first.Allowed)
	require.NoError(t, first.Err())
	require.EqualValues(t, 5, must(l.AddCount(ctx, "k", 2, 20*time.Second)))
	require.False(t, must(l.Peek(ctx, "k", 6)).Allowed)
	res := must(l.Take(ctx, "k", 6))
	require.EqualError(t, res.Err(), "ratelimit: denied: limit 10, retry after 1m5s")

	require.False(t, must(l.Refund(ctx, "k", res)), "a denial has nothing to refund")
	require.True(t, must(l.Refund(ctx, "k", first)))
	require.EqualValues(t, 2, must(l.Count(ctx, "k", 0)))
	require.NoError(t, l.Reset(ctx, "k"))
	require.Zero(t, must(l.Count(ctx, "k", 600*time.Second)))

	_, err := l.Count(ctx, "k", 601*time.Second)
	require.ErrorIs(t, err, ratelimit.ErrInterval)
	require.ErrorContains(t, err, "it is 10m1s, want at most 10m0s")
	_, err = l.Take(ctx, "k", 11)
	require.ErrorIs(t, err, ratelimit.ErrTooLarge)
	require.ErrorContains(t, err, "n is 11, limit is 10")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = l.Take(ended, "k", 1)
	require.ErrorIs(t, err, context.Canceled)
}

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
		require.Equal(t, strings.Contains(want, "no limit"), errors.Is(err, ratelimit.ErrNoLimit))
	}
}

func TestLimiterOfSeveralRules(t *testing.T) {
	h, ctx := newHand(), t.Context()
	second := ratelimit.GCRA(3, time.Second)
	day := ratelimit.SlidingLog(5, 24*time.Hour)
	rules := []ratelimit.Rule{second, day}
	u := must(ratelimit.NewLimiter(newStore(t, memstore.Options{Clock: h.clock}), rules...))

	first := must(u.Take(ctx, "k", 3))
	require.True(t, first.Allowed)
	require.Empty(t, denied(rules, first))
	require.Zero(t, first.Remaining)
	require.Zero(t, first.Receipt)
	require.Equal(t, []int64{0, 2}, []int64{first.Each()[0].Remaining, first.Each()[1].Remaining})

	v := must(u.Take(ctx, "k", 1))
	require.False(t, v.Allowed)
	require.True(t, v.Violated)
	require.Equal(t, []ratelimit.Rule{second}, denied(rules, v))
	require.Equal(t, 333334*time.Microsecond, v.RetryAfter)
	require.EqualValues(t, 3, v.Limit)
	require.Equal(t, 24*time.Hour, v.ResetAfter)

	h.now = h.now.Add(time.Second)
	v = must(u.Take(ctx, "k", 3))
	require.Equal(t, []ratelimit.Rule{day}, denied(rules, v))
	require.EqualValues(t, 2, v.Remaining)
	require.EqualValues(t, 5, v.Limit)
	v = must(u.Peek(ctx, "k", 3))
	require.EqualValues(t, 3, v.Each()[0].Remaining, "a denial charges nothing")

	last := must(u.Take(ctx, "k", 2))
	require.True(t, last.Allowed)
	require.True(t, must(u.Refund(ctx, "k", last)))
	require.False(t, must(u.Refund(ctx, "k", first)), "the GCRA was charged since")
	v = must(u.Peek(ctx, "k", 3))
	require.EqualValues(t, 5, v.Each()[1].Remaining, "but the log gave it back")
	_, err := u.Refund(ctx, "k", ratelimit.Result{})
	require.ErrorIs(t, err, ratelimit.ErrOp)
	_, err = u.Take(ctx, "k", 4)
	require.ErrorIs(t, err, ratelimit.ErrTooLarge)
	n, err := u.AddCount(ctx, "j", 2, 0)
	require.ErrorIs(t, err, ratelimit.ErrNoCount, "of the first rule")
	require.Zero(t, n)
	v = must(u.Add(ctx, "j", 2))
	require.EqualValues(t, 1, v.Remaining)
	require.EqualValues(t, 2, v.Each()[1].Count)

	must(u.Take(ctx, "k", 3))
	require.NoError(t, u.Reset(ctx, "k"))
	v = must(u.Peek(ctx, "k", 1))
	require.EqualValues(t, 3, v.Remaining)
}

// TestAddCountOfTheFirstRule checks that the interval of AddCount may be longer than the spans of the other rules.
func TestAddCountOfTheFirstRule(t *testing.T) {
	ctx := t.Context()
	l := must(ratelimit.NewLimiter(newStore(t, memstore.Options{}), ratelimit.PerHour(100), ratelimit.PerSecond(10)))
	for _, want := range []int64{3, 6} {
		require.Equal(t, want, must(l.AddCount(ctx, "k", 3, time.Hour)))
	}
}

// denied returns the rules that denied the take.
func denied(rules []ratelimit.Rule, res ratelimit.Result) (denied []ratelimit.Rule) {
	for i, r := range res.Each() {
		if r.Violated {
			denied = append(denied, rules[i])
		}
	}
	return denied
}
