package memstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestLogsOfAllWidths compares logs whose times and sums need 32, 48 and 64 bits with a list of all charges. The widths
// grow while the log has events.
func TestLogsOfAllWidths(t *testing.T) {
	for _, per := range []time.Duration{time.Second, time.Hour, 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
		for _, bits := range []int{3, 30, 34, 46} {
			h, random := newHand(), rand.New(rand.NewPCG(uint64(per), uint64(bits)))
			m, r := newStore(t, Options{Clock: h.clock}), ratelimit.SlidingLog(1, per).WithoutLimit()
			l := newLimiter(t, m, r)
			type charge struct {
				at  time.Time
				n   int64
				res ratelimit.Result
			}
			var all []charge
			for i := range 300 { // not more, because a time.Duration is at most 292 years
				h.advance((time.Duration(random.Int64N(int64(per/15))) + time.Microsecond).Truncate(time.Microsecond))
				n := 1 + random.Int64N(1<<random.IntN(bits+1))
				all = append(all, charge{h.now, n, add(t, m, r, "k", n)})
				if c := &all[random.IntN(len(all))]; i%3 == 0 && c.n > 0 && h.now.Sub(c.at) < per {
					ok, err := l.Refund(t.Context(), "k", c.res)
					require.NoError(t, err)
					require.True(t, ok)
					c.n = 0
				}
				for _, d := range []time.Duration{per, (per / 3).Truncate(time.Microsecond)} {
					var want int64
					for _, c := range all {
						if h.now.Sub(c.at) < d {
							want += c.n
						}
					}
					got, err := l.Count(t.Context(), "k", d)
					require.NoError(t, err)
					require.Equal(t, want, got, "%v, %d bits, step %d", per, bits, i)
				}
			}
		}
	}
}

// TestReleasedUnitsTakeNoMemory takes and refunds units many times, while an older and a newer charge stay.
func TestReleasedUnitsTakeNoMemory(t *testing.T) {
	h, r := newHand(), ratelimit.Concurrent(3)
	m := newStore(t, Options{Clock: h.clock})
	l := newLimiter(t, m, r)
	take(t, m, r, "k", 1)
	before := m.Bytes()
	charged := take(t, m, r, "k", 1)
	for range 10_000 {
		h.advance(time.Millisecond)
		newer := take(t, m, r, "k", 1)
		ok, err := l.Refund(t.Context(), "k", charged)
		require.NoError(t, err)
		require.True(t, ok)
		charged = newer
	}
	require.Equal(t, before, m.Bytes())
}

// TestReleasedCountersMakeRoom fills a store with counters whose units are released, beside a counter with a unit in use.
func TestReleasedCountersMakeRoom(t *testing.T) {
	for _, full := range []WhenFull{EvictNearestFull, DenyNew} {
		h, r := newHand(), ratelimit.Concurrent(1)
		m := newStore(t, Options{MaxKeys: 3, WhenFull: full, Clock: h.clock})
		take(t, m, r, "held", 1)
		for i := range 10 {
			h.advance(time.Millisecond)
			key := fmt.Sprint(i)
			op, taken := opOf(ratelimit.Refund, r, key, 0), take(t, m, r, key, 1)
			require.True(t, taken.Allowed)
			op.Receipt = taken.Receipt
			released, err := m.DoOne(t.Context(), op)
			require.NoError(t, err)
			require.True(t, released.Allowed)
		}
		require.Zero(t, remaining(t, m, r, "held"))
	}
}

// TestPrepaidLogsOfAllWidths uses a Per that fits into 32 bits, and events up to an hour ahead that do not.
func TestPrepaidLogsOfAllWidths(t *testing.T) {
	h, r := newHand(), ratelimit.SlidingLog(1000, 71*time.Minute)
	m := newStore(t, Options{Clock: h.clock})
	begun := h.now
	for i := range 60 {
		op := opOf(ratelimit.Take, r, "k", 1)
		if i%2 == 1 {
			op.Prepaid = time.Hour - time.Duration(i)*time.Second
		}
		res, err := m.DoOne(t.Context(), op)
		require.NoError(t, err)
		require.EqualValues(t, 999-i, res.Remaining)
		h.advance(time.Minute)
	}
	for _, tt := range []struct {
		at   time.Duration
		want int64
	}{{71 * time.Minute, 999 - 58}, {71*time.Minute + time.Minute + time.Hour - time.Second, 999 - 56}} {
		h.now = begun.Add(tt.at - time.Microsecond)
		require.Less(t, remaining(t, m, r, "k"), tt.want)
		h.advance(time.Microsecond)
		require.Equal(t, tt.want, remaining(t, m, r, "k"))
	}
}

// TestResetOfAWideLog resets a log with wide events, and later makes a charge that needs wide events again.
func TestResetOfAWideLog(t *testing.T) {
	h, r := newHand(), ratelimit.SlidingLog(1<<53, 4*time.Second)
	m := newStore(t, Options{Clock: h.clock})
	add(t, m, r, "k", 1<<50)
	doOne(t, m, ratelimit.Reset, r, "k", 0)
	add(t, m, r, "k", 1)
	h.advance(5 * time.Second)
	take(t, m, r, "k", 1<<50)
	require.EqualValues(t, 1<<50, doOne(t, m, ratelimit.Count, r, "k", 0).Count)
}
