package memstore

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func TestNewRefuses(t *testing.T) {
	for want, o := range map[string]Options{
		"Options.MaxKeys is -1":    {MaxKeys: -1},
		"Options.MaxBytes is 1000": {MaxBytes: 1000},
		"Options.WhenFull is 2":    {WhenFull: 2},
	} {
		_, err := New(o)
		require.ErrorContains(t, err, want)
	}
}

func TestMemoryUsesSynctestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newStore(t, Options{}), ratelimit.PerMinute(1)
		take(t, m, r, "k", 1)
		denied := take(t, m, r, "k", 1)
		require.False(t, denied.Allowed)
		<-time.After(denied.RetryAfter)
		require.True(t, take(t, m, r, "k", 1).Allowed)
	})
}

func TestMemoryReadsAndDenialsKeepNothing(t *testing.T) {
	m := newStore(t, Options{})
	low, high := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1}), ratelimit.Buckets(ratelimit.BucketOptions{Limit: 5}).WithName("other")
	for _, kind := range []ratelimit.Kind{ratelimit.Peek, ratelimit.Reset, ratelimit.Count} {
		doOne(t, m, kind, low, "k", 1)
	}
	require.Zero(t, m.Len())
	require.Zero(t, m.Bytes())

	take(t, m, low, "k", 1)
	before, known := m.Bytes(), m.Len()
	results, err := m.Do(t.Context(), []ratelimit.Op{opOf(ratelimit.Take, high, "k", 1), opOf(ratelimit.Take, low, "k", 1)})
	require.NoError(t, err)
	require.False(t, results[0].Allowed)
	require.Equal(t, before, m.Bytes(), "a denied group made a counter")
	require.Equal(t, known, m.Len())
}

func TestMemoryMakesRoomAfterReset(t *testing.T) {
	for name, r := range everyRule(10) {
		m := newStore(t, Options{})
		add(t, m, r, "k", 1)
		full := m.Bytes()
		for range 100 {
			doOne(t, m, ratelimit.Reset, r, "k", 0)
			require.Zero(t, m.Len(), name)
			add(t, m, r, "k", 1)
			require.Equal(t, full, m.Bytes(), name)
		}
	}
}

func TestMemoryForgetsTheExpiredAsOthersCome(t *testing.T) {
	for name, r := range everyRule(10) {
		h := newHand()
		m := newStore(t, Options{MaxKeys: 500, Clock: h.clock})
		for i := range 300 {
			add(t, m, r, fmt.Sprint(i), 1)
		}
		before := m.Bytes()
		h.advance(1200*time.Second + 10*time.Second)
		for i := range 300 {
			add(t, m, r, fmt.Sprint("new", i), 1)
		}
		require.Less(t, m.Len(), 310, name)
		require.LessOrEqual(t, m.Bytes(), before*5/4, name)
	}
}

// TestHashesAreNeverZero checks keys whose hash would be 0, which marks an empty slot.
func TestHashesAreNeverZero(t *testing.T) {
	ofWindow := ratelimit.FixedWindow(1, time.Second).WithBlock(ratelimit.Block{After: 1, For: time.Second})
	window := (*rule)(ofWindow.Layout())
	require.EqualValues(t, 2, window.hash(window.ID))
	require.EqualValues(t, 2, window.blockHash(window.blockHash(0)))
	ofLog := ratelimit.SlidingLog(1, time.Second).WithoutLimit()
	log := (*rule)(ofLog.Layout())
	require.EqualValues(t, 1, log.hash(log.ID))
}

func TestMadeUpReceipts(t *testing.T) {
	for name, r := range everyRule(10) {
		m := newStore(t, Options{Clock: newHand().clock})
		good := take(t, m, r, "k", 2).Receipt
		refund := func(c ratelimit.Receipt) bool {
			res, err := m.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Refund, Receipt: c})
			require.NoError(t, err)
			return res.Allowed
		}
		for _, change := range []func(*ratelimit.Receipt){
			func(c *ratelimit.Receipt) { c.Counter += 2 },
			func(c *ratelimit.Receipt) { c.N = 0 },
			func(c *ratelimit.Receipt) { c.N = -1 },
			func(c *ratelimit.Receipt) { c.N = 3 },
			func(c *ratelimit.Receipt) { c.At++ },
			func(c *ratelimit.Receipt) { c.At = -1 << 62 },
			func(c *ratelimit.Receipt) { c.Generation-- },
			func(c *ratelimit.Receipt) { c.Generation++ },
		} {
			bad := good
			change(&bad)
			require.False(t, refund(bad), "%s: %+v", name, bad)
		}
		require.EqualValues(t, 8, remaining(t, m, r, "k"), name)
		require.True(t, refund(good), name)
	}
}

// TestReceiptsOfImpossibleTimes refunds receipts whose distance from the current bucket overflows.
func TestReceiptsOfImpossibleTimes(t *testing.T) {
	h := newHand()
	m, r := newStore(t, Options{Clock: h.clock}), ratelimit.Per(5, 20*time.Microsecond)
	good := take(t, m, r, "k", 2).Receipt
	h.advance(3 * time.Microsecond)
	for i := range int64(10) {
		bad := good
		bad.At = good.At - math.MaxInt64 + i
		res, err := m.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Refund, Receipt: bad})
		require.NoError(t, err)
		require.False(t, res.Allowed, i)
	}
	require.EqualValues(t, 3, remaining(t, m, r, "k"))
}
