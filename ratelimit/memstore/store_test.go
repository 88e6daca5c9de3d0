package memstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/ratelimit"
)

func newStore(t testing.TB, o Options) *Store {
	t.Helper()
	m, err := New(o)
	require.NoError(t, err)
	return m
}

func newLimiter(t testing.TB, s ratelimit.Store, r ratelimit.Rule) *ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.NewLimiter(s, r)
	require.NoError(t, err)
	return l
}

// hand is a clock that a test moves.
type hand struct{ now time.Time }

func newHand() *hand { return &hand{time.Unix(1_800_000_000, 0)} }

func (h *hand) clock() time.Time { return h.now }

func TestNewRefuses(t *testing.T) {
	_, err := New(Options{MaxKeys: -1})
	require.ErrorContains(t, err, "Options.MaxKeys is -1")
	_, err = New(Options{MaxBytes: 1000})
	require.ErrorContains(t, err, "Options.MaxBytes is 1000")
}

func TestMemoryUsesSynctestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, newStore(t, Options{}), ratelimit.PerMinute(1))
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

func TestMemoryEvictsTheNearestToFullQuota(t *testing.T) {
	for name, r := range everyRule(10) {
		t.Run(name, func(t *testing.T) {
			h, ctx := newHand(), t.Context()
			m := newStore(t, Options{MaxKeys: 3, Clock: h.clock})
			l := newLimiter(t, m, r)
			add := func(key string, n int64) {
				h.now = h.now.Add(time.Second)
				_, err := l.Add(ctx, key, n)
				require.NoError(t, err)
			}
			add("a", 1)
			add("b", 1)
			add("c", 5)
			if r.Algorithm() != "window" { // whose windows don't move
				add("a", 9)
			}
			_, err := l.Peek(ctx, "b", 1) // reading changes nothing
			require.NoError(t, err)
			add("d", 1)
			require.Equal(t, 3, m.Len())
			gone := map[string]bool{}
			for _, key := range []string{"a", "b", "c", "d"} {
				res, err := l.Peek(ctx, key, 1)
				require.NoError(t, err)
				gone[key] = res.Remaining == 10
			}
			want := "b"
			if r.Algorithm() == "window" {
				want = "a"
			}
			require.Equal(t, map[string]bool{"a": want == "a", "b": want == "b", "c": false, "d": false}, gone)
		})
	}
}

// TestMemoryEvictsNearlyTheNearest has a store so large that it looks at a sample.
func TestMemoryEvictsNearlyTheNearest(t *testing.T) {
	h, ctx := newHand(), t.Context()
	m := newStore(t, Options{MaxKeys: 64 * keysPerShard * 8, Clock: h.clock})
	l := newLimiter(t, m, ratelimit.GCRA(1000, time.Hour))
	const heavy = 5000
	for i := range heavy {
		_, err := l.Add(ctx, fmt.Sprint("heavy", i), 900)
		require.NoError(t, err)
	}
	for i := range 400_000 {
		_, err := l.Add(ctx, fmt.Sprint("light", i), 1)
		require.NoError(t, err)
	}
	kept := 0
	for i := range heavy {
		res, err := l.Peek(ctx, fmt.Sprint("heavy", i), 1)
		require.NoError(t, err)
		if res.Remaining < 1000 {
			kept++
		}
	}
	require.Equal(t, heavy, kept)
}

func TestMemoryReusesTheExpiredFirst(t *testing.T) {
	h, ctx := newHand(), t.Context()
	m := newStore(t, Options{MaxKeys: 2, Clock: h.clock})
	long := newLimiter(t, m, ratelimit.FixedWindow(5, 10*time.Second).WithName("long"))
	brief := newLimiter(t, m, ratelimit.FixedWindow(5, 4*time.Second))
	for _, l := range []*ratelimit.Limiter{long, brief} {
		_, err := l.Add(ctx, "k", 1)
		require.NoError(t, err)
		h.now = h.now.Add(3 * time.Second)
	}
	h.now = h.now.Add(time.Second)
	_, err := long.Add(ctx, "new", 1)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"k": 1, "new": 1}, counts(t, long, "k", "new"))
	require.Equal(t, 2, m.Len())
}

func TestMemoryForgetsTheExpiredAsOthersCome(t *testing.T) {
	for name, r := range everyRule(10) {
		t.Run(name, func(t *testing.T) {
			h, ctx := newHand(), t.Context()
			m := newStore(t, Options{MaxKeys: 500, Clock: h.clock})
			l := newLimiter(t, m, r)
			for i := range 300 {
				_, err := l.Add(ctx, fmt.Sprint(i), 1)
				require.NoError(t, err)
			}
			before := m.Bytes()
			h.now = h.now.Add(1200*time.Second + 10*time.Second)
			for i := range 300 {
				_, err := l.Add(ctx, fmt.Sprint("new", i), 1)
				require.NoError(t, err)
			}
			require.Less(t, m.Len(), 310)
			require.LessOrEqual(t, m.Bytes(), before*5/4)
		})
	}
}

func TestMemoryDeniesNewKeys(t *testing.T) {
	for name, r := range everyRule(10) {
		t.Run(name, func(t *testing.T) {
			h, ctx := newHand(), t.Context()
			m := newStore(t, Options{MaxKeys: 2, WhenFull: DenyNew, Clock: h.clock})
			l := newLimiter(t, m, r)
			for _, key := range []string{"a", "b"} {
				_, err := l.Take(ctx, key, 1)
				require.NoError(t, err)
			}
			res, err := l.Take(ctx, "c", 1)
			require.NoError(t, err)
			require.False(t, res.Allowed)
			require.True(t, res.Violated)
			require.Zero(t, res.Remaining)
			require.Positive(t, res.RetryAfter)
			_, err = l.Add(ctx, "c", 1)
			require.ErrorIs(t, err, ratelimit.ErrNoRoom)
			res, err = l.Take(ctx, "a", 1)
			require.NoError(t, err)
			require.True(t, res.Allowed, "what is known is served")
			require.EqualValues(t, 8, res.Remaining)

			res, err = l.Take(ctx, "c", 1)
			require.NoError(t, err)
			h.now = h.now.Add(res.RetryAfter - time.Microsecond)
			again, err := l.Take(ctx, "c", 1)
			require.NoError(t, err)
			require.False(t, again.Allowed)
			h.now = h.now.Add(again.RetryAfter)
			res, err = l.Take(ctx, "c", 1)
			require.NoError(t, err)
			require.True(t, res.Allowed)
			require.Equal(t, 2, m.Len())
		})
	}
}

// TestMemoryUndoesAGroupWithoutRoom checks that a group that fails leaves nothing.
func TestMemoryUndoesAGroupWithoutRoom(t *testing.T) {
	h, ctx := newHand(), t.Context()
	m := newStore(t, Options{MaxKeys: 2, WhenFull: DenyNew, Clock: h.clock})
	one := ratelimit.GCRA(5, time.Minute)
	two := ratelimit.SlidingLog(5, time.Minute)
	_, err := newLimiter(t, m, one).Add(ctx, "k", 1)
	require.NoError(t, err)
	results, err := m.Do(ctx, []ratelimit.Op{{Rule: two, Key: "new", N: 1, Kind: ratelimit.Take}, {Rule: one, Key: "new", N: 1, Kind: ratelimit.Take}})
	require.NoError(t, err)
	require.False(t, results[0].Allowed)
	require.False(t, results[0].Violated)
	require.True(t, results[1].Violated)
	require.Equal(t, 1, m.Len())
}

func counts(t *testing.T, l *ratelimit.Limiter, keys ...string) map[string]int64 {
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
	takes, most := 80_000, int64(2<<20)
	if testenv.Racing {
		takes, most = takes/2, most/2
	}
	for name, r := range everyRule(100) {
		for _, full := range []WhenFull{EvictNearestFull, DenyNew} {
			t.Run(fmt.Sprint(name, full), func(t *testing.T) {
				h, ctx := newHand(), t.Context()
				m := newStore(t, Options{MaxKeys: 1 << 20, MaxBytes: most, WhenFull: full, Clock: h.clock})
				l := newLimiter(t, m, r)
				for i := range takes {
					h.now = h.now.Add(time.Microsecond)
					_, err := l.Take(ctx, fmt.Sprint(i%(takes*7/8)), 1)
					require.NoError(t, err)
					if i%64 == 0 {
						require.LessOrEqual(t, m.Bytes(), most)
					}
				}
				require.Greater(t, m.Bytes(), most*8/10)

				m = newStore(t, Options{MaxKeys: 1000, WhenFull: full})
				l = newLimiter(t, m, r)
				for i := range 5000 {
					_, err := l.Take(ctx, fmt.Sprint(i), 1)
					require.NoError(t, err)
				}
				require.LessOrEqual(t, m.Len(), 1000)
				require.Greater(t, m.Len(), 900)
			})
		}
	}
}

// TestMemoryIsBoundedForAllSizes fills a store with states of many sizes, whose blocks
// make room for one another.
func TestMemoryIsBoundedForAllSizes(t *testing.T) {
	h, ctx := newHand(), t.Context()
	m := newStore(t, Options{MaxBytes: minBytes, Clock: h.clock})
	r := rand.New(rand.NewPCG(1, 2))
	var rules []ratelimit.Rule
	for _, span := range []time.Duration{3, 10, 100, 1000} {
		rules = append(rules, ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 40, Interval: time.Second, Span: span * time.Second}))
	}
	rules = append(rules, ratelimit.SlidingLog(1, time.Minute).WithoutLimit(), ratelimit.SlidingLog(1, 1000*time.Hour).WithoutLimit())
	adds := 100_000
	if testenv.Racing {
		adds /= 4
	}
	for range adds {
		h.now = h.now.Add(time.Duration(r.IntN(1000)) * time.Microsecond)
		_, err := m.DoOne(ctx, ratelimit.Op{Rule: rules[r.IntN(len(rules))], Key: fmt.Sprint(r.IntN(300)), N: 1 << r.IntN(40), Kind: ratelimit.Add})
		require.NoError(t, err)
		require.LessOrEqual(t, m.Bytes(), int64(minBytes))
	}
	require.Greater(t, m.Bytes(), int64(minBytes)*8/10)
}

func TestMemoryReadsAndDenialsKeepNothing(t *testing.T) {
	m, ctx := newStore(t, Options{}), t.Context()
	low, high := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1}), ratelimit.Buckets(ratelimit.BucketOptions{Limit: 5}).WithName("other")
	l := newLimiter(t, m, low)
	_, err := l.Peek(ctx, "k", 1)
	require.NoError(t, err)
	require.NoError(t, l.Reset(ctx, "k"))
	counts(t, l, "k")
	require.Zero(t, m.Len())
	require.Zero(t, m.Bytes())

	_, err = l.Take(ctx, "k", 1)
	require.NoError(t, err)
	before, known := m.Bytes(), m.Len()
	results, err := m.Do(ctx, []ratelimit.Op{{Rule: high, Key: "k", N: 1, Kind: ratelimit.Take}, {Rule: low, Key: "k", N: 1, Kind: ratelimit.Take}})
	require.NoError(t, err)
	require.False(t, results[0].Allowed)
	require.Equal(t, before, m.Bytes(), "a denied group makes no counter")
	require.Equal(t, known, m.Len())
}

func TestMemoryMakesRoomAfterReset(t *testing.T) {
	for name, r := range everyRule(10) {
		t.Run(name, func(t *testing.T) {
			m, ctx := newStore(t, Options{}), t.Context()
			l := newLimiter(t, m, r)
			_, err := l.Add(ctx, "k", 1)
			require.NoError(t, err)
			full := m.Bytes()
			for range 100 {
				require.NoError(t, l.Reset(ctx, "k"))
				require.Zero(t, m.Len())
				_, err = l.Add(ctx, "k", 1)
				require.NoError(t, err)
				require.Equal(t, full, m.Bytes())
			}
		})
	}
}
