package storage

import (
	"fmt"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/errtext"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/gcra"
)

// maxCount is the largest count and limit: what a double, and so Lua, holds exactly.
const maxCount = 1 << 53

// Validate returns what is wrong with ops apart from any store's state: [ratelimit.ErrOp],
// [ratelimit.ErrTooLarge], [ratelimit.ErrInterval], [ratelimit.ErrNoCount],
// [ratelimit.ErrNoLimit] or [ratelimit.ErrOverflow].
func Validate(ops []ratelimit.Op) error {
	for from := 0; from < len(ops); {
		to := groupEnd(ops, from)
		for i := from; i < to; i++ {
			if err := validate(&ops[i], ops[from:i]); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// validate checks op, which comes after before in its group.
func validate(op *ratelimit.Op, before []ratelimit.Op) error {
	switch {
	case op.Rule.Layout().Algorithm == 0:
		return errtext.New(fmt.Sprint(ratelimit.ErrOp, ": ", strings.TrimPrefix(op.Rule.Err().Error(), "ratelimit: ")), ratelimit.ErrOp, op.Rule.Err())
	case op.Kind < ratelimit.Take || op.Kind > ratelimit.Reset:
		return fmt.Errorf("%w: %v", ratelimit.ErrOp, op.Kind)
	case len(op.Key) == 0 || len(op.Key) > ratelimit.MaxKeyLen:
		return fmt.Errorf("%w: key of %d bytes, want 1 to %d", ratelimit.ErrOp, len(op.Key), ratelimit.MaxKeyLen)
	}
	switch op.Kind {
	case ratelimit.Take, ratelimit.Peek, ratelimit.Add:
		if err := validateN(op, before); err != nil {
			return err
		}
	}
	if err := validatePrepaid(op, before); err != nil {
		return err
	}
	switch op.Kind {
	case ratelimit.Add, ratelimit.Count:
		return validateInterval(op)
	}
	return nil
}

// validateN compares n with the limit before the largest count: more than the limit is the
// caller's mistake even if it is also too much to count.
func validateN(op *ratelimit.Op, before []ratelimit.Op) error {
	l := op.Rule.Layout()
	n, most := op.N, maxUnits(l)
	if op.Kind == ratelimit.Take && 1 <= n && n <= most {
		n += Pending(before, l.ID)
	}
	switch {
	case n < 0:
		return fmt.Errorf("%w: n is %d, which is negative", ratelimit.ErrOp, n)
	case n == 0 && op.Kind != ratelimit.Add:
		return fmt.Errorf("%w: n is 0, want at least 1", ratelimit.ErrOp)
	case op.Kind != ratelimit.Add && l.Limit == 0:
		return fmt.Errorf("%w: %v of %v", ratelimit.ErrNoLimit, op.Kind, op.Rule)
	case op.Kind != ratelimit.Add && n > l.Burst:
		return fmt.Errorf("%w: n is %d, limit is %d", ratelimit.ErrTooLarge, n, l.Burst)
	case n > most:
		return errtext.New(fmt.Sprintf("%v that can be counted: n is %d, want at most %d", ratelimit.ErrTooLarge, n, most), ratelimit.ErrTooLarge, ratelimit.ErrOverflow)
	}
	return nil
}

// maxUnits returns how many units an op and a counter can have, so that the arithmetic stays exact.
func maxUnits(l *Layout) int64 {
	if l.Algorithm == GCRA {
		return gcra.MaxUnits(l.Per)
	}
	return maxCount
}

func validateInterval(op *ratelimit.Op) error {
	switch r := &op.Rule; {
	case op.Interval < 0:
		return fmt.Errorf("%w: interval is %v, want more than 0", ratelimit.ErrOp, op.Interval)
	case r.Layout().Algorithm == GCRA && (op.Kind == ratelimit.Count || op.Interval > 0):
		return fmt.Errorf("%w: %v", ratelimit.ErrNoCount, op.Rule)
	case op.Interval == 0:
	case r.Layout().Algorithm == Window && op.Interval != r.Per():
		return fmt.Errorf("%w: it is %v, want %v", ratelimit.ErrInterval, op.Interval, r.Per())
	case op.Interval > r.Span():
		return fmt.Errorf("%w: it is %v, want at most %v", ratelimit.ErrInterval, op.Interval, r.Span())
	}
	return nil
}

// validatePrepaid checks op's Prepaid: only a take that is a group of its own can have one.
func validatePrepaid(op *ratelimit.Op, before []ratelimit.Op) error {
	switch {
	case len(before) > 0 && (op.Prepaid != 0 || before[0].Prepaid != 0):
		return fmt.Errorf("%w: Prepaid in a group of several", ratelimit.ErrOp)
	case op.Prepaid == 0:
		return nil
	case op.Kind != ratelimit.Take:
		return fmt.Errorf("%w: Prepaid of a %v", ratelimit.ErrOp, op.Kind)
	}
	if longest := min(op.Rule.Per(), ratelimit.MaxPrepaid); op.Prepaid < 0 || op.Prepaid > longest {
		return fmt.Errorf("%w: Prepaid is %v, want 0 to %v", ratelimit.ErrOp, op.Prepaid, longest)
	}
	l := op.Rule.Layout()
	if l.Algorithm == GCRA && Micros(op.Prepaid) > (l.Burst-op.N)*l.Per/l.Limit {
		return fmt.Errorf("%w: n is %d, burst is %d less the units of %v", ratelimit.ErrTooLarge, op.N, l.Burst, op.Prepaid)
	}
	return nil
}

// Micros returns d, which is not negative, in microseconds, rounded up.
func Micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
