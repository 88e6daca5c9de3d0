package memstore

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestLogsOfAllWidths has times and sums of 32, 48 and 64 bits, which grow while units
// are kept, and compares with a list of all charges.
func TestLogsOfAllWidths(t *testing.T) {
	for _, per := range []time.Duration{time.Second, time.Hour, 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
		for _, bits := range []int{3, 30, 34, 46} {
			h, ctx, r := newHand(), t.Context(), rand.New(rand.NewPCG(uint64(per), uint64(bits)))
			l := newLimiter(t, newStore(t, Options{Clock: h.clock}), ratelimit.SlidingLog(1, per).WithoutLimit())
			type charge struct {
				at  time.Time
				n   int64
				res ratelimit.Result
			}
			var all []charge
			sum := func(d time.Duration) (n int64) {
				for _, c := range all {
					if h.now.Sub(c.at) < d {
						n += c.n
					}
				}
				return n
			}
			for i := range 300 { // durations end at 292 years
				h.now = h.now.Add((time.Duration(r.Int64N(int64(per/15))) + time.Microsecond).Truncate(time.Microsecond))
				n := 1 + r.Int64N(1<<r.IntN(bits+1))
				res, err := l.Add(ctx, "k", n)
				require.NoError(t, err)
				all = append(all, charge{h.now, n, res})
				if c := &all[r.IntN(len(all))]; i%3 == 0 && c.n > 0 && h.now.Sub(c.at) < per {
					ok, err := l.Refund(ctx, "k", c.res)
					require.NoError(t, err)
					require.True(t, ok)
					c.n = 0
				}
				for _, d := range []time.Duration{per, per / 3} {
					d = d.Truncate(time.Microsecond)
					got, err := l.Count(ctx, "k", d)
					require.NoError(t, err)
					require.Equal(t, sum(d), got, "%v, %d bits, step %d", per, bits, i)
				}
			}
		}
	}
}

// TestPrepaidLogsOfAllWidths has a Per that fits 32 bits, and events that are an hour ahead.
func TestPrepaidLogsOfAllWidths(t *testing.T) {
	h, ctx := newHand(), t.Context()
	r := ratelimit.SlidingLog(1000, 71*time.Minute)
	m := newStore(t, Options{Clock: h.clock})
	begun := h.now
	for i := range 60 {
		op := ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take}
		if i%2 == 1 {
			op.Prepaid = time.Hour - time.Duration(i)*time.Second
		}
		res, err := m.DoOne(ctx, op)
		require.NoError(t, err)
		require.EqualValues(t, 999-i, res.Remaining)
		h.now = h.now.Add(time.Minute)
	}
	for _, leave := range []struct {
		at   time.Duration
		left int64
	}{{71 * time.Minute, 999 - 58}, {71*time.Minute + time.Minute + time.Hour - time.Second, 999 - 56}} {
		h.now = begun.Add(leave.at - time.Microsecond)
		before, err := m.DoOne(ctx, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Peek})
		require.NoError(t, err)
		h.now = begun.Add(leave.at)
		after, err := m.DoOne(ctx, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Peek})
		require.NoError(t, err)
		require.Less(t, before.Remaining, after.Remaining)
		require.Equal(t, leave.left, after.Remaining)
	}
}

// TestResetOfAWideLog charges what needs wide events to a log that a group has reset.
func TestResetOfAWideLog(t *testing.T) {
	h, ctx := newHand(), t.Context()
	r := ratelimit.SlidingLog(1<<53, 4*time.Second)
	m := newStore(t, Options{Clock: h.clock})
	op := func(k ratelimit.Kind, n int64) ratelimit.Op { return ratelimit.Op{Rule: r, Key: "k", N: n, Kind: k} }
	for _, ops := range [][]ratelimit.Op{{op(ratelimit.Add, 1<<50)}, {op(ratelimit.Reset, 0), op(ratelimit.Add, 1)}} {
		_, err := m.Do(ctx, ops)
		require.NoError(t, err)
	}
	h.now = h.now.Add(5 * time.Second)
	_, err := m.DoOne(ctx, op(ratelimit.Take, 1<<50))
	require.NoError(t, err)
	res, err := m.DoOne(ctx, op(ratelimit.Count, 0))
	require.NoError(t, err)
	require.EqualValues(t, 1<<50, res.Count)
}
