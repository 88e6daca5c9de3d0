package ratelimit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newMemory(t testing.TB, o MemoryOptions) *MemoryStore {
	t.Helper()
	m, err := NewMemory(o)
	require.NoError(t, err)
	return m
}

func newLimiter(t testing.TB, s Store, r Rule) *Limiter {
	t.Helper()
	l, err := NewLimiter(s, r)
	require.NoError(t, err)
	return l
}

// hand is a clock that a test moves.
type hand struct{ now time.Time }

func newHand() *hand { return &hand{time.Unix(1_800_000_000, 0)} }

func (h *hand) clock() time.Time { return h.now }

func TestNewMemoryRefuses(t *testing.T) {
	_, err := NewMemory(MemoryOptions{MaxSubjects: -1})
	require.ErrorContains(t, err, "MemoryOptions.MaxSubjects is -1")
	_, err = NewMemory(MemoryOptions{MaxBytes: 1000})
	require.ErrorContains(t, err, "MemoryOptions.MaxBytes is 1000")
}

func TestMemoryReadsTheClockOfTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, newMemory(t, MemoryOptions{}), Must(Buckets(BucketOptions{Limit: 1, Per: time.Minute})))
		_, err := l.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		res, err := l.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		require.False(t, res.Allowed)
		<-time.After(res.RetryAfter)
		res, err = l.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		require.True(t, res.Allowed)
	})
}

func TestMemoryEvictsTheIdlest(t *testing.T) {
	h, ctx := newHand(), t.Context()
	m := newMemory(t, MemoryOptions{MaxSubjects: 3, Clock: h.clock})
	l := newLimiter(t, m, Must(Buckets(BucketOptions{})))
	add := func(key string) {
		h.now = h.now.Add(time.Second)
		_, err := l.Add(ctx, key, 1)
		require.NoError(t, err)
	}
	add("a")
	add("b")
	add("c")
	_, err := l.Count(ctx, "a", 0) // reading is using
	require.NoError(t, err)
	add("d")
	require.Equal(t, 3, m.Len())
	require.Equal(t, map[string]int64{"a": 1, "b": 0, "c": 1, "d": 1}, counts(t, l, "a", "b", "c", "d"))
}

func TestMemoryEvictsTheIdlestOfAllExpiries(t *testing.T) {
	h, ctx := newHand(), t.Context()
	m := newMemory(t, MemoryOptions{MaxSubjects: 2, Clock: h.clock})
	long := newLimiter(t, m, Must(Buckets(BucketOptions{})))
	longer := newLimiter(t, m, Must(Buckets(BucketOptions{Expiry: 24 * time.Hour})))
	for _, l := range []*Limiter{longer, long, long} {
		h.now = h.now.Add(time.Second)
		_, err := l.Add(ctx, fmt.Sprint(h.now.Second()), 1)
		require.NoError(t, err)
	}
	require.Equal(t, map[string]int64{"1": 0, "2": 1, "3": 1}, counts(t, long, "1", "2", "3"))
}

func TestMemoryEvictsWhileOthersTake(t *testing.T) {
	m := newMemory(t, MemoryOptions{MaxSubjects: 600})
	l := newLimiter(t, m, Must(Buckets(BucketOptions{Limit: 5})))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				if _, err := l.Take(t.Context(), fmt.Sprint(i*(g+1)), 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, m.Len(), 600)
}

func TestMemoryReusesTheExpiredFirst(t *testing.T) {
	h, ctx := newHand(), t.Context()
	m := newMemory(t, MemoryOptions{MaxSubjects: 2, Clock: h.clock})
	long := newLimiter(t, m, Must(Buckets(BucketOptions{})))
	brief := newLimiter(t, m, Must(Buckets(BucketOptions{Interval: time.Second, Span: 3 * time.Second})))
	for _, l := range []*Limiter{long, brief} {
		_, err := l.Add(ctx, l.Rule().Span().String(), 1)
		require.NoError(t, err)
		h.now = h.now.Add(3 * time.Second)
	}
	h.now = h.now.Add(3 * time.Second)
	_, err := long.Add(ctx, "new", 1)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"10m0s": 1, "new": 1}, counts(t, long, "10m0s", "new"), "the idlest isn't over")
	require.Equal(t, 2, m.Len())
}

func TestMemoryForgetsTheExpiredAsOthersCome(t *testing.T) {
	h, ctx := newHand(), t.Context()
	m := newMemory(t, MemoryOptions{MaxSubjects: 500, Clock: h.clock})
	l := newLimiter(t, m, Must(Buckets(BucketOptions{})))
	for i := range 300 {
		_, err := l.Add(ctx, fmt.Sprint(i), 1)
		require.NoError(t, err)
	}
	h.now = h.now.Add(1200 * time.Second)
	require.Equal(t, map[string]int64{"0": 0}, counts(t, l, "0"))
	for i := range 150 {
		_, err := l.Add(ctx, fmt.Sprint("new", i), 1)
		require.NoError(t, err)
	}
	require.Equal(t, 150, m.Len())
}

func counts(t *testing.T, l *Limiter, keys ...string) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for _, k := range keys {
		n, err := l.Count(t.Context(), k, 0)
		require.NoError(t, err)
		got[k] = n
	}
	return got
}

func TestMemoryIsBounded(t *testing.T) {
	ctx := t.Context()
	m := newMemory(t, MemoryOptions{MaxSubjects: 5000, MaxBytes: 2 << 20})
	l := newLimiter(t, m, Must(Buckets(BucketOptions{Limit: 5})))
	for i := range 20_000 {
		_, err := l.Take(ctx, fmt.Sprint(strings.Repeat("k", i%500), i), 1)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, m.Bytes(), int64(2<<20))
	require.Greater(t, m.Bytes(), int64(2<<20)*9/10)

	m = newMemory(t, MemoryOptions{MaxSubjects: 1000})
	l = newLimiter(t, m, Must(Buckets(BucketOptions{Limit: 5})))
	for i := range 5000 {
		_, err := l.Take(ctx, fmt.Sprint(i), 1)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, m.Len(), 1000)
	require.Greater(t, m.Len(), 900)
}

func TestMemoryReadsAndDenialsKeepNothing(t *testing.T) {
	m, ctx := newMemory(t, MemoryOptions{}), t.Context()
	low, high := Must(Buckets(BucketOptions{Limit: 1})), Must(Buckets(BucketOptions{Name: "other", Limit: 5}))
	l := newLimiter(t, m, low)
	_, err := l.Peek(ctx, "k", 1)
	require.NoError(t, err)
	require.NoError(t, l.Reset(ctx, "k"))
	counts(t, l, "k")
	require.Zero(t, m.Len())
	require.Zero(t, m.Bytes())

	_, err = l.Take(ctx, "k", 1)
	require.NoError(t, err)
	before := m.Bytes()
	results, err := m.Do(ctx, []Op{{Rule: high, Key: "k", N: 1, Kind: Take}, {Rule: low, Key: "k", N: 1, Kind: Take}})
	require.NoError(t, err)
	require.False(t, results[0].Allowed)
	require.Equal(t, before, m.Bytes(), "a denied group makes no counter")
}

func TestMemoryAccountsForReset(t *testing.T) {
	m, ctx := newMemory(t, MemoryOptions{}), t.Context()
	l := newLimiter(t, m, Must(Buckets(BucketOptions{})))
	_, err := l.Add(ctx, "k", 1)
	require.NoError(t, err)
	full := m.Bytes()
	require.NoError(t, l.Reset(ctx, "k"))
	require.Equal(t, full-8*124, m.Bytes())
	_, err = l.Add(ctx, "k", 1)
	require.NoError(t, err)
	require.Equal(t, full, m.Bytes())
}

func TestMemoryRefusesWhatCannotFit(t *testing.T) {
	m, ctx := newMemory(t, MemoryOptions{MaxBytes: minBytes}), t.Context()
	huge := func(name string) Op {
		o := BucketOptions{Name: name, Interval: time.Second, Span: 65000 * time.Second}
		return Op{Rule: Must(Buckets(o)), Key: "k", N: 1, Kind: Add}
	}
	_, err := m.Do(ctx, []Op{huge("a")})
	require.NoError(t, err)
	_, err = m.Do(ctx, []Op{huge("b"), huge("c")})
	require.ErrorIs(t, err, ErrNoRoom)
	require.Equal(t, 1, m.Len())
}

func TestTakeOnAKnownKeyDoesNotAllocate(t *testing.T) {
	ctx := context.Background()
	l := newLimiter(t, newMemory(t, MemoryOptions{}), Must(Buckets(BucketOptions{Limit: 100})))
	take := func() {
		if _, err := l.Take(ctx, "k", 1); err != nil {
			t.Fatal(err)
		}
	}
	take()
	require.Zero(t, testing.AllocsPerRun(1000, take), "Take, allowed and denied")
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if _, err := l.AddCount(ctx, "k", 1, 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}), "AddCount")
}
