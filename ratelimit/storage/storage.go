// Package storage helps to write a [ratelimit.Store] or a layer around one.
//
// A store calls [Validate] before it changes anything, and splits the ops into [Groups]. It reads the parameters of a rule
// from its [Layout], which [ratelimit.Rule.Layout] returns. Package storetest tests stores.
package storage

import (
	"fmt"
	"iter"
	"strings"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/gcra"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// Layout holds the parameters of a rule:
//
//	Algorithm        the way of counting
//	Stream           whether Redis keeps a log as a stream
//	Concurrent       whether a log holds requests in progress; see [ratelimit.Concurrent]
//	Window           the number of buckets to which the limit applies, without the newest
//	Buckets          the number of buckets that can be counted, without the newest
//	Period, Location the period of a Window in the calendar of a location, 0 if it begins with its first charge
//	Limit            0 if the rule only counts
//	Burst            the largest n that can pass
//	Per, Interval, Span, Expiry
//	BlockAfter       the number of denials that start a block, 0 without a block
//	BlockFor         the duration of the block
//	Name, Named      the rule's name; if Named, it also distinguishes the counter
//	ID               a hash that distinguishes the rule's counter from other counters of a key
//	OwnBurst, Err    for package ratelimit only
//
// Durations are in microseconds. A field that the algorithm does not use is 0. The method Wait limits the RetryAfter and the
// ResetAfter of a result to a second if the rule is Concurrent.
type Layout = layout.Layout

// Algorithm is a way of counting. The zero Algorithm marks an invalid rule.
type Algorithm = layout.Algorithm

// The algorithms.
const (
	Buckets = layout.Buckets
	Log     = layout.Log
	Window  = layout.Window
	GCRA    = layout.GCRA
)

// Groups returns the atomic groups of ops, each with the index of its first op.
func Groups(ops []ratelimit.Op) iter.Seq2[int, []ratelimit.Op] {
	return func(yield func(int, []ratelimit.Op) bool) {
		for from := 0; from < len(ops); {
			to := groupEnd(ops, from)
			if !yield(from, ops[from:to]) {
				return
			}
			from = to
		}
	}
}

func groupEnd(ops []ratelimit.Op, from int) int {
	first, to := &ops[from], from+1
	if first.Kind != ratelimit.Take && first.Kind != ratelimit.Refund {
		return to
	}
	for to < len(ops) && ops[to].Kind == first.Kind && ops[to].Key == first.Key && !ops[to].NewGroup {
		to++
	}
	return to
}

// Pending returns the number of units that takes charge to the counter whose [Layout] has the id. A later take of the same
// group passes only if these units and its own fit together.
func Pending(takes []ratelimit.Op, id uint64) int64 {
	var n int64
	for i := range takes {
		if takes[i].Rule.Layout().ID == id {
			n += takes[i].N
		}
	}
	return n
}

// MaxCount is the largest count and the largest limit.
const MaxCount = layout.MaxCount

// Validate returns an error if an op is invalid, whatever the state of the store is: [ratelimit.ErrOp],
// [ratelimit.ErrTooLarge], [ratelimit.ErrInterval], [ratelimit.ErrNoCount], [ratelimit.ErrNoLimit] or
// [ratelimit.ErrOverflow].
func Validate(ops []ratelimit.Op) error {
	for from, to := 0, 0; from < len(ops); from = to {
		to = groupEnd(ops, from)
		for i := from; i < to; i++ {
			if err := validate(&ops[i], ops[from:i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// validate checks op. before contains the earlier ops of the same group.
func validate(op *ratelimit.Op, before []ratelimit.Op) error {
	switch {
	case op.Rule.Layout().Algorithm == 0:
		return option.WithText(fmt.Sprint(ratelimit.ErrOp, ": ", strings.TrimPrefix(op.Rule.Err().Error(), "ratelimit: ")), ratelimit.ErrOp, op.Rule.Err())
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
	if op.Prepaid != 0 || len(before) > 0 && before[0].Prepaid != 0 {
		if err := validatePrepaid(op, before); err != nil {
			return err
		}
	}
	switch op.Kind {
	case ratelimit.Add, ratelimit.Count:
		return validateInterval(op)
	}
	return nil
}

// validateN checks op.N. A take above the limit is [ratelimit.ErrTooLarge], even if n is also too large to be counted.
func validateN(op *ratelimit.Op, before []ratelimit.Op) error {
	l := op.Rule.Layout()
	n, most := op.N, int64(MaxCount)
	if l.Algorithm == GCRA {
		most = gcra.MaxUnits(l.Per)
	}
	if op.Kind == ratelimit.Take && len(before) > 0 && 1 <= n && n <= most {
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
		return option.WithText(fmt.Sprintf("%v that can be counted: n is %d, want at most %d", ratelimit.ErrTooLarge, n, most), ratelimit.ErrTooLarge, ratelimit.ErrOverflow)
	}
	return nil
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

// validatePrepaid checks op's Prepaid. Only a take that is the only op of its group can have one.
func validatePrepaid(op *ratelimit.Op, before []ratelimit.Op) error {
	switch {
	case len(before) > 0:
		return fmt.Errorf("%w: Prepaid in a group of several", ratelimit.ErrOp)
	case op.Kind != ratelimit.Take:
		return fmt.Errorf("%w: Prepaid of a %v", ratelimit.ErrOp, op.Kind)
	case op.Rule.Layout().Concurrent:
		return fmt.Errorf("%w: Prepaid of a Concurrent", ratelimit.ErrOp)
	}
	if longest := min(op.Rule.Per(), ratelimit.MaxPrepaid); op.Prepaid < 0 || op.Prepaid > longest {
		return fmt.Errorf("%w: Prepaid is %v, want 0 to %v", ratelimit.ErrOp, op.Prepaid, longest)
	}
	l := op.Rule.Layout()
	if l.Algorithm == GCRA && layout.Micros(op.Prepaid) > (l.Burst-op.N)*l.Per/l.Limit {
		return fmt.Errorf("%w: n is %d, burst is %d less the units of %v", ratelimit.ErrTooLarge, op.N, l.Burst, op.Prepaid)
	}
	return nil
}
