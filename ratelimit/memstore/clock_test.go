package memstore

import (
	"errors"
	"hash/maphash"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestMemoryAfterAClockThatJumps charges and lets the clock jump, up to the largest duration. A jump back must not forget
// the charges, and a jump forward must.
func TestMemoryAfterAClockThatJumps(t *testing.T) {
	for name, r := range everyRule(10) {
		for _, d := range []time.Duration{
			time.Microsecond, time.Second, time.Hour, 24 * 365 * time.Hour, 100 * 24 * 365 * time.Hour, math.MaxInt64,
		} {
			h := newHand()
			m := newStore(t, Options{Clock: h.clock})
			take(t, m, r, "k", 10)
			h.advance(-d)
			res := take(t, m, r, "k", 1)
			require.False(t, res.Allowed, "%s, %v back", name, d)
			require.GreaterOrEqual(t, res.RetryAfter, min(d, ratelimit.MaxDuration), "%s, %v back", name, d)
			require.GreaterOrEqual(t, res.ResetAfter, res.RetryAfter)
			doOne(t, m, ratelimit.Reset, r, "k", 0)
			require.True(t, take(t, m, r, "k", 10).Allowed, "%s, %v back, after Reset", name, d)
			h.advance(max(d, 2*time.Minute))
			require.True(t, take(t, m, r, "k", 10).Allowed, "%s, %v forward", name, d)
		}
	}
}

// jumps reads ops and jumps of the clock from the input of a fuzz test.
type jumps struct{ data []byte }

func (j *jumps) next() int64 {
	if len(j.data) == 0 {
		return 0
	}
	b := j.data[0]
	j.data = j.data[1:]
	return int64(b)
}

// move returns a jump of any size, forward or back.
func (j *jumps) move() time.Duration {
	size, sign := j.next(), time.Duration(1)
	if size >= 128 {
		size, sign = size-128, -1
	}
	return sign * time.Duration(1+j.next()) * time.Duration(1000<<(size%46))
}

// FuzzMemoryUnderAnyClock runs arbitrary ops on a small store whose clock jumps by arbitrary amounts. The store must
// not panic, its size must stay within its bounds, and its results must be in their valid ranges.
func FuzzMemoryUnderAnyClock(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03 take it easy"))
	f.Add([]byte("\xff\xfe\x80\x80 and back again, by years"))
	rules := []ratelimit.Rule{
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: 5, Interval: time.Microsecond, Span: 3 * time.Microsecond}),
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 53}).WithBlock(ratelimit.Block{After: 1, For: ratelimit.MaxDuration}),
		ratelimit.SlidingLog(5, time.Second).WithBlock(ratelimit.Block{After: 2, For: time.Microsecond}),
		ratelimit.SlidingLog(1<<53, ratelimit.MaxDuration),
		ratelimit.FixedWindow(5, ratelimit.MaxDuration).WithBlock(ratelimit.Block{After: 1, For: time.Hour}),
		ratelimit.Throttle(time.Microsecond),
		ratelimit.GCRA(1<<53-1, time.Microsecond).WithBlock(ratelimit.Block{After: 1, For: time.Hour}),
		ratelimit.GCRA(1, ratelimit.MaxDuration/2).WithBurst(1),
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, j := newHand(), &jumps{data}
		m := newStore(t, Options{Clock: h.clock, MaxKeys: 4, WhenFull: WhenFull(j.next() & 1)})
		for len(j.data) > 0 {
			h.advance(j.move())
			op := ratelimit.Op{Rule: rules[j.next()%int64(len(rules))], Key: string(rune('a' + j.next()%8)), Kind: ratelimit.Kind(1 + j.next()%6)}
			op.N = 1 + j.next()<<(j.next()%48)
			op.Receipt = ratelimit.Receipt{Counter: ruleFor(&op).hash(maphash.String(m.seed, op.Key)), N: j.next(), At: h.now.UnixMicro() + j.next(), Generation: j.next()}
			res, err := m.DoOne(t.Context(), op)
			for _, known := range []error{ratelimit.ErrOp, ratelimit.ErrTooLarge, ratelimit.ErrNoCount, ratelimit.ErrOverflow, ratelimit.ErrNoRoom} {
				if err != nil && errors.Is(err, known) {
					err, res = nil, ratelimit.Result{}
				}
			}
			require.NoError(t, err)
			require.LessOrEqual(t, m.Len(), 4)
			require.GreaterOrEqual(t, res.RetryAfter, time.Duration(0))
			require.GreaterOrEqual(t, res.ResetAfter, time.Duration(0))
			require.GreaterOrEqual(t, res.Count, int64(0))
			require.GreaterOrEqual(t, res.Remaining, int64(0))
			require.LessOrEqual(t, res.Remaining, op.Rule.Burst())
			if op.Kind == ratelimit.Take && res.Limit > 0 && !res.Allowed {
				require.Positive(t, res.RetryAfter)
			}
		}
	})
}
