package memstore

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestInsertIntoFullTail inserts hashes that belong into the last home. They are stored in the tail, and once it is full,
// the table grows up to the bound, or an entry in the tail is evicted.
func TestInsertIntoFullTail(t *testing.T) {
	for _, homes := range []uint64{minHomes, 4 * minHomes} {
		s := &shard{maxUsed: 100, maxBytes: tableBytes(homes)}
		g := group{shard: s}
		for i := range uint64(40) {
			g.now++
			e := g.insert(math.MaxUint64 - 1 - 2*i)
			require.NotNil(t, e, i)
			require.Same(t, e, s.table.find(math.MaxUint64-1-2*i))
			e.until = g.now + 1000
			require.LessOrEqual(t, s.bytes(), s.maxBytes)
			require.LessOrEqual(t, s.table.homes, homes)
		}
		require.GreaterOrEqual(t, s.table.used, 7, "the tail is not used")
		g.denies = true
		require.Nil(t, g.insert(math.MaxUint64-1-80), "all counters are in use")
		require.Positive(t, g.wait)
	}
}

// TestReserveToTheLastByte reserves two blocks in a shard with room for exactly one.
func TestReserveToTheLastByte(t *testing.T) {
	s := &shard{maxUsed: 100}
	g := group{shard: s}
	class := s.arena.classFor(10)
	s.maxBytes = s.arena.classes[class].bytesFor(1)
	require.True(t, g.reserve(class))
	s.arena.take(class, 2)
	require.False(t, g.reserve(class))
}

// TestMemoryFreesBeforeItEvicts frees the blocks of counters with the same size, and then needs their room for counters
// with a different size.
func TestMemoryFreesBeforeItEvicts(t *testing.T) {
	m, r := newStore(t, Options{MaxKeys: 500, Clock: newHand().clock}), ratelimit.Buckets(ratelimit.BucketOptions{})
	keys := addresses(200)
	for _, key := range keys {
		add(t, m, r, key, 1)
	}
	for _, key := range keys[:60] { // few enough that the class does not shrink by itself
		doOne(t, m, ratelimit.Reset, r, key, 0)
	}
	m.shards[0].maxBytes = m.Bytes()
	for _, key := range keys[:20] {
		add(t, m, ratelimit.Buckets(ratelimit.BucketOptions{Span: 300 * time.Second}), key, 1)
	}
	require.Equal(t, 140+20, m.Len(), "a counter was evicted")
}

// TestMemoryMakesRoomForAWholeGroup makes several adds whose sum needs wider numbers than each of them.
func TestMemoryMakesRoomForAWholeGroup(t *testing.T) {
	const n = 3 << 30
	for _, r := range []ratelimit.Rule{ratelimit.Buckets(ratelimit.BucketOptions{}), ratelimit.SlidingLog(1, time.Minute).WithoutLimit()} {
		for _, before := range []int64{0, 1} {
			h := newHand()
			m := newStore(t, Options{Clock: h.clock})
			add(t, m, r, "k", before)
			op := opOf(ratelimit.Add, r, "k", n)
			results, err := m.Do(t.Context(), []ratelimit.Op{op, op, op})
			require.NoError(t, err)
			require.EqualValues(t, before+3*n, results[2].Count)
			h.advance(30 * time.Second)
			require.EqualValues(t, before+4*n, add(t, m, r, "k", n).Count)
		}
	}
}

func TestMemoryEvictsTheNearestToFullQuota(t *testing.T) {
	for name, r := range everyRule(10) {
		h := newHand()
		m := newStore(t, Options{MaxKeys: 3, Clock: h.clock})
		charge := func(key string, n int64) {
			h.advance(5 * time.Second) // a charge in the same bucket would not change the order
			add(t, m, r, key, n)
		}
		charge("a", 1)
		charge("b", 1)
		charge("c", 5)
		evicted := "a"
		if r.Algorithm() != "window" { // a charge does not change the end of a window
			charge("a", 9)
			evicted = "b"
		}
		remaining(t, m, r, "b") // a read does not change the order
		charge("d", 1)
		require.Equal(t, 3, m.Len(), name)
		for _, key := range []string{"a", "b", "c", "d"} {
			require.Equal(t, key == evicted, remaining(t, m, r, key) == 10, "%s: %s", name, key)
		}
	}
}

// TestMemoryEvictsNearlyTheNearest fills a store that is so large that it compares only a sample of its counters.
func TestMemoryEvictsNearlyTheNearest(t *testing.T) {
	m := newStore(t, Options{MaxKeys: 64 * keysPerShard * 8, Clock: newHand().clock})
	r := ratelimit.GCRA(1000, time.Hour)
	const heavy = 5000
	for i := range heavy {
		add(t, m, r, fmt.Sprint("heavy", i), 900)
	}
	for i := range 400_000 {
		add(t, m, r, fmt.Sprint("light", i), 1)
	}
	for i := range heavy {
		require.Less(t, remaining(t, m, r, fmt.Sprint("heavy", i)), int64(1000))
	}
}

func TestMemoryReusesTheExpiredFirst(t *testing.T) {
	h := newHand()
	m := newStore(t, Options{MaxKeys: 2, Clock: h.clock})
	long, brief := ratelimit.FixedWindow(5, 10*time.Second).WithName("long"), ratelimit.FixedWindow(5, 4*time.Second)
	add(t, m, long, "k", 1)
	h.advance(3 * time.Second)
	add(t, m, brief, "k", 1)
	h.advance(4 * time.Second)
	add(t, m, long, "new", 1)
	require.Equal(t, 2, m.Len())
	for _, key := range []string{"k", "new"} {
		require.EqualValues(t, 4, remaining(t, m, long, key), key)
	}
}

func TestMemoryDeniesNewKeys(t *testing.T) {
	for name, r := range everyRule(10) {
		h := newHand()
		m := newStore(t, Options{MaxKeys: 2, WhenFull: DenyNew, Clock: h.clock})
		take(t, m, r, "a", 1)
		take(t, m, r, "b", 1)
		denied := take(t, m, r, "c", 1)
		require.False(t, denied.Allowed, name)
		require.True(t, denied.Violated, name)
		require.Zero(t, denied.Remaining, name)
		require.Positive(t, denied.RetryAfter, name)
		_, err := m.DoOne(t.Context(), opOf(ratelimit.Add, r, "c", 1))
		require.ErrorIs(t, err, ratelimit.ErrNoRoom, name)
		known := take(t, m, r, "a", 1)
		require.True(t, known.Allowed, name)
		require.EqualValues(t, 8, known.Remaining, name)

		h.advance(take(t, m, r, "c", 1).RetryAfter - time.Microsecond)
		early := take(t, m, r, "c", 1)
		require.False(t, early.Allowed, name)
		h.advance(early.RetryAfter)
		require.True(t, take(t, m, r, "c", 1).Allowed, name)
		require.Equal(t, 2, m.Len(), name)
	}
}

// TestMemoryUndoesAGroupWithoutRoom checks that a group leaves no counters if there is room for only some of them.
func TestMemoryUndoesAGroupWithoutRoom(t *testing.T) {
	m := newStore(t, Options{MaxKeys: 2, WhenFull: DenyNew, Clock: newHand().clock})
	one, two := ratelimit.GCRA(5, time.Minute), ratelimit.SlidingLog(5, time.Minute)
	add(t, m, one, "k", 1)
	results, err := m.Do(t.Context(), []ratelimit.Op{opOf(ratelimit.Take, two, "new", 1), opOf(ratelimit.Take, one, "new", 1)})
	require.NoError(t, err)
	require.False(t, results[0].Allowed)
	require.False(t, results[0].Violated)
	require.True(t, results[1].Violated)
	require.Equal(t, 1, m.Len())
}

// TestGroupLargerThanStore checks that a group whose counters never fit is an error instead of a denial.
func TestGroupLargerThanStore(t *testing.T) {
	m := newStore(t, Options{MaxBytes: minBytes, WhenFull: DenyNew})
	r := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 40, Interval: time.Second, Span: 65000 * time.Second})
	var ops []ratelimit.Op
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		ops = append(ops, opOf(ratelimit.Take, r.WithName(name), "k", 1<<40))
	}
	_, err := m.Do(t.Context(), ops)
	require.ErrorIs(t, err, ratelimit.ErrNoRoom)
	require.Zero(t, m.Len())
}
