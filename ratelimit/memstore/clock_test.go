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

// centuries are clocks that show anything that a time.Duration can tell apart.
var centuries = []time.Duration{
	time.Microsecond, time.Second, time.Hour, 24 * 365 * time.Hour, 100 * 24 * 365 * time.Hour, math.MaxInt64,
}

// TestMemoryAfterAClockThatJumps charges, lets the clock jump, and checks that nothing
// that was charged before a jump back is forgotten, and all that was before a jump on.
func TestMemoryAfterAClockThatJumps(t *testing.T) {
	for name, r := range everyRule(10) {
		for _, d := range centuries {
			h, ctx := newHand(), t.Context()
			l := newLimiter(t, newStore(t, Options{Clock: h.clock}), r)
			_, err := l.Take(ctx, "k", 10)
			require.NoError(t, err)
			h.now = h.now.Add(-d)
			res, err := l.Take(ctx, "k", 1)
			require.NoError(t, err)
			require.False(t, res.Allowed, "%s, %v back", name, d)
			require.GreaterOrEqual(t, res.RetryAfter, min(d, ratelimit.MaxDuration), "%s, %v back", name, d)
			require.GreaterOrEqual(t, res.ResetAfter, res.RetryAfter)
			require.NoError(t, l.Reset(ctx, "k"))
			res, err = l.Take(ctx, "k", 10)
			require.NoError(t, err)
			require.True(t, res.Allowed, "%s, %v back, after Reset", name, d)
			h.now = h.now.Add(max(d, 2*time.Minute))
			res, err = l.Take(ctx, "k", 10)
			require.NoError(t, err)
			require.True(t, res.Allowed, "%s, %v on", name, d)
		}
	}
}

// jumps reads a list of ops and jumps of the clock from bytes.
type jumps struct {
	data []byte
}

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
			h.now = h.now.Add(j.move())
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
