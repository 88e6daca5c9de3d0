package layer

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

func listsAround(t *testing.T, o ListsOptions) (*listLayer, *storespy.Spy) {
	memory, _ := newMemory(t)
	store := &storespy.Spy{Store: memory}
	l, err := newLists(store, o)
	require.NoError(t, err)
	return l, store
}

func TestListsConformsToStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		memory, clock := newMemory(t)
		// The lists must not be empty, because the layer skips the look-up of addresses if there are no networks.
		l, err := newLists(memory, ListsOptions{
			Allow: List{Keys: []string{"allowed"}, Networks: networksOf("10.0.0.0/8")},
			Deny:  List{Prefixes: []string{"denied:"}},
		})
		require.NoError(t, err)
		return l, clock
	}, storetest.Everything)
}

func TestAllowedKey(t *testing.T) {
	l, store := listsAround(t, ListsOptions{Allow: List{Keys: []string{"k"}}})
	for _, kind := range []ratelimit.Kind{ratelimit.Take, ratelimit.Peek} {
		for range 12 {
			res, err := l.DoOne(t.Context(), ratelimit.Op{Rule: gcra(10), Key: "k", N: 100, Kind: kind})
			require.NoError(t, err)
			require.Equal(t, ratelimit.Result{Allowed: true, Limit: 10, Remaining: 10, Source: ratelimit.FromAllowList}, res)
		}
	}
	// The key is also allowed in a group, and in a list with other groups.
	day := ratelimit.FixedWindow(5, time.Hour)
	out, err := l.Do(t.Context(), []ratelimit.Op{take(day, "k", 6), take(gcra(10), "k", 9), take(gcra(10), "k", 9)})
	require.NoError(t, err)
	for _, res := range out {
		require.True(t, res.Allowed)
		require.Equal(t, ratelimit.FromAllowList, res.Source)
	}
	require.Empty(t, store.Drain(), "no call of the store")
}

func TestDeniedKey(t *testing.T) {
	l, store := listsAround(t, ListsOptions{Allow: List{Keys: []string{"k"}}, Deny: List{Keys: []string{"k"}}})
	want := ratelimit.Result{
		Violated: true, Limit: 10, RetryAfter: time.Hour, ResetAfter: time.Hour, Source: ratelimit.FromDenyList,
	}
	for _, kind := range []ratelimit.Kind{ratelimit.Take, ratelimit.Peek} {
		res, err := l.DoOne(t.Context(), ratelimit.Op{Rule: gcra(10), Key: "k", N: 1, Kind: kind})
		require.NoError(t, err)
		require.Equal(t, want, res)
	}
	require.Empty(t, store.Drain(), "no call of the store")
}

// TestOtherOpsOnListedKeys checks that the counters of a listed key can be read, reset and refunded.
func TestOtherOpsOnListedKeys(t *testing.T) {
	const key = "k"
	l, store := listsAround(t, ListsOptions{})
	w := ratelimit.SlidingLog(10, time.Minute)
	charged, err := l.DoOne(t.Context(), take(w, key, 4))
	require.NoError(t, err)
	one := func(op ratelimit.Op) ratelimit.Result {
		op.Rule, op.Key = w, key
		res, err := l.DoOne(t.Context(), op)
		require.NoError(t, err)
		return res
	}
	count := ratelimit.Op{Kind: ratelimit.Count}

	require.NoError(t, l.Set(List{Keys: []string{key}}, List{}))
	free := one(ratelimit.Op{N: 1, Kind: ratelimit.Take})
	require.False(t, one(ratelimit.Op{Kind: ratelimit.Refund, Receipt: free.Receipt}).Allowed)
	require.True(t, one(ratelimit.Op{N: 3, Kind: ratelimit.Add}).Allowed)
	require.EqualValues(t, 4, one(count).Count, "nothing is counted")
	require.True(t, one(ratelimit.Op{Kind: ratelimit.Refund, Receipt: charged.Receipt}).Allowed)
	require.Zero(t, one(count).Count)

	require.NoError(t, l.Set(List{}, List{Keys: []string{key}}))
	require.EqualValues(t, 3, one(ratelimit.Op{N: 3, Kind: ratelimit.Add}).Count, "adds are never denied")
	store.Drain()
	out, err := l.Do(t.Context(), []ratelimit.Op{
		{Rule: w, Key: key, N: 1, Kind: ratelimit.Add},
		{Rule: w, Key: key, N: 1, Kind: ratelimit.Peek},
		{Rule: w, Key: key, N: 1, Kind: ratelimit.Take},
		{Rule: w, Key: key, Kind: ratelimit.Count},
		{Rule: w, Key: key, Kind: ratelimit.Reset},
	})
	require.NoError(t, err)
	require.True(t, out[0].Allowed, "adds are never denied")
	require.True(t, out[1].Violated)
	require.True(t, out[2].Violated)
	require.EqualValues(t, 4, out[3].Count)
	require.True(t, out[4].Allowed)
	require.Equal(t, []string{"Do"}, store.Drain())
	require.Zero(t, one(count).Count)
}

// TestListedAndOtherKeys checks that all ops that need the store go to it in a single call and keep their groups.
func TestListedAndOtherKeys(t *testing.T) {
	l, store := listsAround(t, ListsOptions{Allow: List{Keys: []string{"a"}}, Deny: List{Keys: []string{"d"}}})
	hour := ratelimit.FixedWindow(5, time.Hour)
	out, err := l.Do(t.Context(), []ratelimit.Op{
		take(gcra(3), "k", 2), take(hour, "k", 2), take(gcra(3), "a", 1), take(gcra(3), "k", 2), take(gcra(3), "d", 1), take(hour, "k", 1),
	})
	require.NoError(t, err)
	require.Equal(t, []string{"Do"}, store.Drain())
	for i, allowed := range []bool{true, true, true, false, false, true} {
		require.Equal(t, allowed, out[i].Allowed, i)
	}
	require.EqualValues(t, 2, out[5].Remaining)
}

func TestListsValidateFirst(t *testing.T) {
	l, store := listsAround(t, ListsOptions{Allow: List{Keys: []string{"a"}}, Deny: List{Keys: []string{"d"}}})
	for _, bad := range []ratelimit.Op{
		{}, take(ratelimit.Rule{}, "a", 1), take(gcra(3), "a", 0), take(gcra(3), "a", -1), take(gcra(3), "d", 0),
		{Rule: gcra(3), Key: "a", N: 1, Kind: 99},
	} {
		_, err := l.Do(t.Context(), []ratelimit.Op{take(gcra(3), "k", 1), take(gcra(3), "a", 1), bad})
		require.ErrorIs(t, err, ratelimit.ErrOp)
		if bad.Key != "" {
			_, err = l.DoOne(t.Context(), bad)
			require.ErrorIs(t, err, ratelimit.ErrOp)
		}
	}
	left, err := store.Store.DoOne(t.Context(), ratelimit.Op{Rule: gcra(3), Key: "k", N: 1, Kind: ratelimit.Peek})
	require.NoError(t, err)
	require.EqualValues(t, 3, left.Remaining, "nothing was charged")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.DoOne(ended, take(gcra(3), "a", 1))
	require.ErrorIs(t, err, context.Canceled)
	_, err = l.Do(ended, []ratelimit.Op{take(gcra(3), "d", 1)})
	require.ErrorIs(t, err, context.Canceled)
}

func TestInvalidLists(t *testing.T) {
	memory, _ := newMemory(t)
	for want, o := range map[string]ListsOptions{
		"Allow.Keys[1] is empty":           {Allow: List{Keys: []string{"k", ""}}},
		"Deny.Prefixes[0] is empty":        {Deny: List{Prefixes: []string{""}}},
		"Deny.Networks[0] is not a prefix": {Deny: List{Networks: []netip.Prefix{{}}}},
	} {
		_, err := newLists(memory, o)
		require.ErrorContains(t, err, want)
	}
	l, _ := listsAround(t, ListsOptions{Deny: List{Keys: []string{"k"}}})
	require.Error(t, l.Set(List{}, List{Keys: []string{""}}))
	res, err := l.DoOne(t.Context(), take(gcra(1), "k", 1))
	require.NoError(t, err)
	require.Equal(t, ratelimit.FromDenyList, res.Source, "the lists are as they were")
}

func TestListsAllocateNothing(t *testing.T) {
	memory, _ := newMemory(t)
	l, err := newLists(memory, ListsOptions{
		Allow: List{Keys: []string{"login:me"}, Prefixes: []string{"free:"}, Networks: networksOf("10.0.0.0/8", "2001:db8::/32")},
	})
	require.NoError(t, err)
	for _, key := range []string{"search:someone", "login:me", "search:10.0.0.1", "search:192.0.2.1", "search:2001:db8::/64"} {
		op := take(gcra(1<<20), key, 1)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if res, err := l.DoOne(t.Context(), op); err != nil || !res.Allowed {
				t.Error(res, err)
			}
		}), key)
	}
}
