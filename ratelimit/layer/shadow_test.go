package layer

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

// shadowed returns a shadow rule. All other rules in these tests are enforced.
func shadowed(limit int64) ratelimit.Rule {
	return ratelimit.FixedWindow(limit, time.Hour).WithName("shadow")
}

func isShadow(op ratelimit.Op) bool { return op.Rule.Name() == "shadow" }

type shadowTest struct {
	*testing.T
	*storespy.Spy
	*shadowLayer
	reports []ratelimit.Event // of the takes by shadow rules that the store has not allowed
}

func newShadowTest(t *testing.T, match func(ratelimit.Op) bool) *shadowTest {
	memory, _ := newMemory(t)
	s := &shadowTest{T: t, Spy: &storespy.Spy{Store: memory}}
	seen := ratelimit.Observe(s.Spy, func(_ context.Context, e ratelimit.Event) {
		if s.o.Match(e.Op) && e.Op.Kind == ratelimit.Take && !e.Result.Allowed {
			s.reports = append(s.reports, e)
		}
	})
	var err error
	s.shadowLayer, err = newShadow(seen, ShadowOptions{Match: match})
	require.NoError(t, err)
	return s
}

func (s *shadowTest) do(ops ...ratelimit.Op) []ratelimit.Result {
	s.Helper()
	out, err := s.shadowLayer.Do(s.Context(), ops)
	require.NoError(s, err)
	require.Len(s, out, len(ops))
	return out
}

func (s *shadowTest) remaining(r ratelimit.Rule) int64 {
	s.Helper()
	out, err := s.Spy.Store.Do(s.Context(), []ratelimit.Op{{Rule: r, Key: "k", N: 1, Kind: ratelimit.Peek}})
	require.NoError(s, err)
	return out[0].Remaining
}

// TestShadowConformsToStore checks that enforced rules conform to storetest if each call also has a take by a shadow
// rule.
func TestShadowConformsToStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		memory, clock := newMemory(t)
		s, err := newShadow(memory, ShadowOptions{Match: isShadow})
		require.NoError(t, err)
		return besideShadow{s}, clock
	}, storetest.Everything)
}

// besideShadow adds a take by a shadow rule to every list of ops.
type besideShadow struct{ *shadowLayer }

func (b besideShadow) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	out, err := b.shadowLayer.Do(ctx, append([]ratelimit.Op{take(shadowed(3), "beside", 4)}, ops...))
	if err != nil {
		return nil, err
	}
	return out[1:], nil
}

func (b besideShadow) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(b.Do).DoOne(ctx, op)
}

func TestShadowRuleDeniesNothing(t *testing.T) {
	s := newShadowTest(t, nil)
	for i := range int64(5) {
		res, err := s.shadowLayer.DoOne(t.Context(), take(shadowed(3), "k", 1))
		require.NoError(t, err)
		require.True(t, res.Allowed)
		require.Equal(t, ratelimit.FromShadow, res.Source)
		require.Equal(t, i >= 3, res.Violated)
		require.Equal(t, max(0, 2-i), res.Remaining)
		require.Equal(t, i >= 2, res.RetryAfter > 0)
	}
	peek, err := s.shadowLayer.DoOne(t.Context(), ratelimit.Op{Rule: shadowed(3), Key: "k", N: 1, Kind: ratelimit.Peek})
	require.NoError(t, err)
	require.True(t, peek.Allowed)
	require.True(t, peek.Violated)
	require.Len(t, s.reports, 2)
	require.Equal(t, take(shadowed(3), "k", 1), s.reports[0].Op)
	require.False(t, s.reports[0].Result.Allowed)
	require.Equal(t, ratelimit.FromStore, s.reports[0].Result.Source)
	require.Positive(t, s.reports[0].Result.RetryAfter)

	count, err := s.shadowLayer.DoOne(t.Context(), ratelimit.Op{Rule: shadowed(3), Key: "k", Kind: ratelimit.Count})
	require.NoError(t, err)
	require.EqualValues(t, 3, count.Count, "denials charge nothing")
}

func TestShadowRuleNeverFails(t *testing.T) {
	s := newShadowTest(t, isShadow)
	res, err := s.shadowLayer.DoOne(t.Context(), take(shadowed(3), "k", 4))
	require.NoError(t, err)
	require.Equal(t, ratelimit.Result{Allowed: true, Limit: 3, Source: ratelimit.FromShadow}, res)
	require.ErrorIs(t, s.reports[0].Err, ratelimit.ErrTooLarge)

	s.Spy.Before = func(context.Context) error { return ratelimit.ErrStore }
	res, err = s.shadowLayer.DoOne(t.Context(), take(shadowed(3), "k", 1))
	require.NoError(t, err)
	require.True(t, res.Allowed)
	require.ErrorIs(t, s.reports[1].Err, ratelimit.ErrStore)
	require.Len(t, s.reports, 2)

	for _, op := range []ratelimit.Op{take(gcra(3), "k", 1), {Rule: shadowed(3), Key: "k", Kind: ratelimit.Count}} {
		_, err = s.shadowLayer.DoOne(t.Context(), op)
		require.ErrorIs(t, err, ratelimit.ErrStore)
	}
	_, err = s.shadowLayer.Do(t.Context(), []ratelimit.Op{take(gcra(3), "k", 1), take(shadowed(3), "k", 1)})
	require.ErrorIs(t, err, ratelimit.ErrStore)

	// The store fails only in its second call, for the shadow rule.
	calls := 0
	s.Spy.Before = func(context.Context) error {
		if calls++; calls == 2 {
			return ratelimit.ErrStore
		}
		return nil
	}
	out := s.do(take(gcra(3), "k", 1), take(shadowed(3), "k", 1))
	require.True(t, out[0].Allowed)
	require.True(t, out[1].Allowed)
	require.EqualValues(t, 2, s.remaining(gcra(3)))
}

func TestShadowRuleInAGroup(t *testing.T) {
	s := newShadowTest(t, isShadow)
	a, b := gcra(4), shadowed(2)
	for range 2 {
		out := s.do(take(b, "k", 1), take(a, "k", 1))
		require.True(t, out[0].Allowed && !out[0].Violated)
		require.True(t, out[1].Allowed)
	}
	out := s.do(take(b, "k", 1), take(a, "k", 1))
	require.True(t, out[0].Allowed && out[0].Violated, "it would have denied")
	require.True(t, out[1].Allowed)
	require.EqualValues(t, 1, s.remaining(a), "but the others are charged")

	s.Drain()
	denied := s.do(take(a, "k", 2), take(b, "k", 1))
	require.Equal(t, []string{"Do"}, s.Drain(), "a denied group does not reach its shadow rules")
	require.False(t, denied[0].Allowed)
	require.True(t, denied[0].Violated)
	require.False(t, denied[1].Allowed)
	require.False(t, denied[1].Violated)

	s.Drain()
	s.do(take(b, "k", 1), ratelimit.Op{Rule: b, Key: "k", N: 1, Kind: ratelimit.Add})
	s.do(take(a, "k2", 1), take(a, "k3", 1))
	require.Equal(t, []string{"Do", "Do"}, s.Drain(), "one call where nothing is mixed")
}

// TestShadowRulesInSeveralGroups checks that the groups of a list stay separate when the layer removes shadow rules
// from them.
func TestShadowRulesInSeveralGroups(t *testing.T) {
	s := newShadowTest(t, isShadow)
	a, b := gcra(2), shadowed(3)
	out := s.do(
		take(a, "k", 2), take(b, "k", 2),
		take(b, "x", 1),
		take(a, "k", 1), take(b, "k", 1), // this group is denied
		take(b, "y", 1),
		take(b, "k", 2), // this take would be denied
		take(a, "y", 1),
	)
	for i, want := range []struct{ allowed, violated bool }{
		{true, false}, {true, false}, {true, false}, {false, true}, {false, false}, {true, false}, {true, true}, {true, false},
	} {
		require.Equal(t, want.allowed, out[i].Allowed, i)
		require.Equal(t, want.violated, out[i].Violated, i)
	}
	require.EqualValues(t, 1, s.remaining(b))
	require.Len(t, s.reports, 1)

	other := ratelimit.Op{Rule: a, Key: "between", N: 1, Kind: ratelimit.Take}
	c := b.WithLimit(5)
	out = s.do(take(c, "k", 2), other, take(c, "k", 2))
	require.False(t, out[0].Violated)
	require.True(t, out[2].Violated)
	require.EqualValues(t, 1, s.remaining(c))
}

// TestShadowCountsAsIfEnforced checks that a shadow rule counts as if it were enforced, and that it has no influence
// on enforced rules.
func TestShadowCountsAsIfEnforced(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newShadowTest(t, isShadow)
		inForce, _ := newMemory(t)
		without, _ := newMemory(t)
		a, b, b2 := gcra(20), shadowed(15), shadowed(15).WithLimit(9)
		rule := rapid.SampledFrom([]ratelimit.Rule{a, b, b2})
		for range rapid.IntRange(1, 30).Draw(rt, "groups") {
			var ops, others []ratelimit.Op
			for range rapid.IntRange(1, 3).Draw(rt, "ops") {
				op := take(rule.Draw(rt, "rule"), "k", rapid.Int64Range(1, 3).Draw(rt, "n"))
				ops = append(ops, op)
				if !isShadow(op) {
					others = append(others, op)
				}
			}
			got := s.do(ops...)
			want, err := without.Do(t.Context(), others)
			require.NoError(rt, err)
			allowed := true
			for i, op := range ops {
				if !isShadow(op) {
					want[0].Receipt.Counter, got[i].Receipt.Counter = 0, 0 // the stores have different counters
					require.Equal(rt, want[0], got[i])
					want = want[1:]
				}
				allowed = allowed && got[i].Allowed && !got[i].Violated
			}
			res, err := inForce.Do(t.Context(), ops)
			require.NoError(rt, err)
			require.Equal(rt, res[0].Allowed, allowed)
			if !allowed { // the layer still charges the enforced rules, if these allow the group
				_, err = inForce.Do(t.Context(), others)
				require.NoError(rt, err)
			}
			require.Equal(rt, ofTried(t, inForce), s.remaining(b))
		}
	})
}

// TestShadowValidates checks that invalid ops by shadow rules are errors.
func TestShadowValidates(t *testing.T) {
	s := newShadowTest(t, nil)
	for _, op := range []ratelimit.Op{
		take(gcra(5), "", 1), take(gcra(5), "k", 0), take(gcra(5), "k", -1), {Rule: gcra(5), Key: "k", N: -1, Kind: ratelimit.Add},
	} {
		_, err := s.shadowLayer.DoOne(t.Context(), op)
		require.ErrorIs(t, err, ratelimit.ErrOp)
		_, err = s.shadowLayer.Do(t.Context(), []ratelimit.Op{take(gcra(5), "k", 1), op})
		require.ErrorIs(t, err, ratelimit.ErrOp)
	}
}

func ofTried(t *testing.T, store ratelimit.Store) int64 {
	out, err := store.Do(t.Context(), []ratelimit.Op{{Rule: shadowed(15), Key: "k", N: 1, Kind: ratelimit.Peek}})
	require.NoError(t, err)
	return out[0].Remaining
}
