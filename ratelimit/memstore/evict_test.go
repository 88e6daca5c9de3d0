package memstore

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestInsertWithOneHome has hashes that are all pushed out of the last home, into
// a tail that is full after a few: the table grows for them as long as the bound allows
// it, which is to the last byte, and then makes room among them.
func TestInsertWithOneHome(t *testing.T) {
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
		require.GreaterOrEqual(t, s.table.used, 7, "the tail is used")
		g.denies = true
		require.Nil(t, g.insert(math.MaxUint64-1-80), "none is over")
		require.Positive(t, g.wait)
	}
}

// TestReserveToTheLastByte has room for exactly one block.
func TestReserveToTheLastByte(t *testing.T) {
	s := &shard{maxUsed: 100}
	g := group{shard: s}
	class := s.arena.classFor(10)
	s.maxBytes = s.arena.classes[class].bytesFor(1)
	require.True(t, g.reserve(class))
	s.arena.take(class, 2)
	require.False(t, g.reserve(class))
}

// TestMemoryFreesBeforeItEvicts frees the blocks of counters with the same size, and then needs their room for a
// counter with a different size.
func TestMemoryFreesBeforeItEvicts(t *testing.T) {
	h, ctx := newHand(), t.Context()
	m := newStore(t, Options{MaxKeys: 500, Clock: h.clock})
	l := newLimiter(t, m, ratelimit.Buckets(ratelimit.BucketOptions{}))
	keys := addresses(200)
	for _, key := range keys {
		_, err := l.Add(ctx, key, 1)
		require.NoError(t, err)
	}
	for _, key := range keys[:60] { // not so many that the room is given back at once
		require.NoError(t, l.Reset(ctx, key))
	}
	m.shards[0].maxBytes = m.Bytes()
	for _, key := range keys[:20] {
		_, err := newLimiter(t, m, ratelimit.Buckets(ratelimit.BucketOptions{Span: 300 * time.Second})).Add(ctx, key, 1)
		require.NoError(t, err)
	}
	require.Equal(t, 140+20, m.Len(), "nothing was forgotten")
}

// TestMemoryDeniesOnlyWhatWaitingHelps has counters that are too large for the store alone.
func TestMemoryDeniesOnlyWhatWaitingHelps(t *testing.T) {
	m := newStore(t, Options{MaxBytes: minBytes, WhenFull: DenyNew})
	r := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 40, Interval: time.Second, Span: 65000 * time.Second})
	other := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 40, Interval: time.Second, Span: 65000 * time.Second}).WithName("other")
	third := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 40, Interval: time.Second, Span: 65000 * time.Second}).WithName("third")
	var ops []ratelimit.Op
	for _, r := range []ratelimit.Rule{r, other, third} {
		ops = append(ops, ratelimit.Op{Rule: r, Key: "k", N: 1 << 40, Kind: ratelimit.Take})
	}
	_, err := m.Do(t.Context(), ops)
	require.ErrorIs(t, err, ratelimit.ErrNoRoom)
	require.Zero(t, m.Len())
}

// TestMemoryMakesRoomForAWholeGroup charges two times in a group what fits into narrow
// numbers only one by one.
func TestMemoryMakesRoomForAWholeGroup(t *testing.T) {
	const n = 3 << 30
	for _, r := range []ratelimit.Rule{ratelimit.Buckets(ratelimit.BucketOptions{}), ratelimit.SlidingLog(1, time.Minute).WithoutLimit()} {
		for _, before := range []int64{0, 1} {
			h := newHand()
			m := newStore(t, Options{Clock: h.clock})
			if before > 0 {
				_, err := m.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", N: before, Kind: ratelimit.Add})
				require.NoError(t, err)
			}
			add := ratelimit.Op{Rule: r, Key: "k", N: n, Kind: ratelimit.Add}
			results, err := m.Do(t.Context(), []ratelimit.Op{add, add, add})
			require.NoError(t, err)
			require.EqualValues(t, before+3*n, results[2].Count)
			h.now = h.now.Add(30 * time.Second)
			res, err := m.DoOne(t.Context(), add)
			require.NoError(t, err)
			require.EqualValues(t, before+4*n, res.Count)
		}
	}
}

// No hash is that of a gap.
func TestHashesAreNeverZero(t *testing.T) {
	ofWindow := ratelimit.FixedWindow(1, time.Second).WithBlock(ratelimit.Block{After: 1, For: time.Second})
	window := (*rule)(ofWindow.Layout())
	require.EqualValues(t, 2, window.hash(window.ID))
	require.EqualValues(t, 2, window.blockHash(window.blockHash(0)))
	ofLog := ratelimit.SlidingLog(1, time.Second).WithoutLimit()
	log := (*rule)(ofLog.Layout())
	require.EqualValues(t, 1, log.hash(log.ID))
}
