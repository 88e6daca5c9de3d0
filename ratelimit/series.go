package ratelimit

import (
	"context"
	"fmt"
	"math"
	"time"
)

// ManyTaker is what a [Store] may also be: one that takes a number of times at the cost of
// one call.
//
// TakeMany does what Do does with as many ops as times says, all of them op and each
// Apart, one after another at one moment; but if the charges together would leave what can
// be counted, it charges nothing, which is [ErrOverflow]. What [ValidateMany] says comes
// before any change.
type ManyTaker interface {
	TakeMany(ctx context.Context, op Op, times int) (Series, error)
}

// maxTimes keeps a number of takes in 32 bits.
const maxTimes = math.MaxInt32

// ValidateMany is [Validate] for a TakeMany. It is for writers of stores.
func ValidateMany(op *Op, times int) error {
	switch {
	case op.Kind != Take:
		return fmt.Errorf("%w: %v of many, want a take", ErrOp, op.Kind)
	case op.Ahead != 0:
		return fmt.Errorf("%w: Ahead of many", ErrOp)
	case times < 1 || times > maxTimes:
		return fmt.Errorf("%w: %d takes, want 1 to %d", ErrOp, times, maxTimes)
	}
	return validate(op, nil)
}

// Series is the results of equal takes, one after another at one moment: as they are
// equal, the first Passed of them are allowed, and the rest are denied. It is as large as
// two results, however many there are. All its fields but Passed are for stores.
type Series struct {
	Passed int

	Last   Result // of the last take that is allowed, if one is
	Denied Result // of the first that is denied, if one is
	// Raise is what each charge of a GCRA raised its level by: n × Per in microseconds. It
	// is 0 for rules whose charges of one moment have the same At and Life.
	Raise int64
	// Hold is how long the rule's Block holds after the first Free denials, 0 if it doesn't.
	Hold time.Duration
	Free int
}

// Result returns the result of take i, the first of which is 0. It has no say in how many
// there were.
func (s *Series) Result(i int) Result {
	if i < s.Passed {
		return s.allowed(int64(s.Passed - 1 - i))
	}
	res := s.Denied
	if i-s.Passed >= s.Free && s.Hold > 0 {
		res.Remaining, res.Blocked = 0, s.Hold
		res.RetryAfter, res.ResetAfter = max(res.RetryAfter, s.Hold), max(res.ResetAfter, s.Hold)
	}
	return res
}

// allowed returns the result of the take that is so many before the last one.
func (s *Series) allowed(before int64) Result {
	res := s.Last
	if before == 0 {
		return res
	}
	res.Remaining += before * res.Receipt.N
	res.RetryAfter = 0 // there was a unit, since others took it
	if s.Raise > 0 {
		level := res.Receipt.Life - before*s.Raise
		res.ResetAfter += micros(ceilDiv(level, res.Limit)) - micros(ceilDiv(res.Receipt.Life, res.Limit))
		res.Receipt.Life = level
	}
	return res
}
