package ratelimit

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/gcra"
)

// Store runs ops. It is safe for concurrent use.
//
// Do runs ops in order and returns one result for each. Consecutive ops on one key are
// a group (see [Groups]), and a group is atomic: first every take in it is checked, then
// everything is charged in order. If one take is denied, the group changes nothing: its
// peeks and counts are answered, all else has Allowed false, and Violated tells which
// rules denied.
//
// Do calls [Validate] before it changes anything. A failure of the store wraps
// [ErrStore]; groups before it may have been charged.
//
// A store may also have DoOne(ctx, Op) (Result, error), which does what Do does with a
// list of one; a [Limiter] prefers it, because it needs no slices. For its takes it prefers
// Take(ctx, *Rule, key string, n int64) (Result, error), which copies no rule. A type that
// embeds a store has those of the store, too.
type Store interface {
	Do(ctx context.Context, ops []Op) ([]Result, error)
}

// DoOne returns store's DoOne, made from Do if it has none. It is for writers of layers,
// who call it once for each store.
func DoOne(store Store) func(context.Context, Op) (Result, error) {
	if s, ok := store.(interface {
		DoOne(ctx context.Context, op Op) (Result, error)
	}); ok {
		return s.DoOne
	}
	return func(ctx context.Context, op Op) (Result, error) {
		out, err := store.Do(ctx, []Op{op})
		switch {
		case err != nil:
			return Result{}, err
		case len(out) != 1:
			return Result{}, fmt.Errorf("%w: %d results of one op", ErrStore, len(out))
		}
		return out[0], nil
	}
}

// Kind is what an [Op] does.
type Kind uint8

// The kinds. The zero Kind is invalid.
const (
	Take   Kind = iota + 1 // charge N, at least 1, if the limit allows it
	Peek                   // say what Take would, charge nothing
	Add                    // charge N, which may be 0, without asking the limit, and count
	Count                  // count the units of the last Interval
	Refund                 // undo the charge of Receipt
	Reset                  // forget the rule's counter of this key
)

var kindNames = [...]string{Take: "take", Peek: "peek", Add: "add", Count: "count", Refund: "refund", Reset: "reset"}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if k < Take || k > Reset {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Op is one question to a [Store].
type Op struct {
	Rule Rule
	Key  string // the subject, 1 to MaxKeyLen bytes
	N    int64  // units, up to 2^53 (GCRA: see GCRAOptions.Burst); take, peek and add only
	Kind Kind

	// Interval is what a count or an add counts over, up to the rule's span. Zero
	// means the rule's Per. A GCRA counts nothing: its adds leave this zero.
	Interval time.Duration
	// Receipt is the charge to refund.
	Receipt Receipt
	// Prepaid, of a take that is a group of its own, charges its units so that the rule is
	// kept whenever they are spent within that time; see [Op.ValidFor]. It is at most the
	// rule's Per, and MaxPrepaid.
	Prepaid time.Duration
	// NewGroup begins a new group, even if the op before has the same key.
	NewGroup bool
}

// MaxKeyLen is the length of the longest key that a store accepts, in bytes.
const MaxKeyLen = 1024

// maxCount is the largest count and limit: what a double, and so Lua, holds exactly.
const maxCount = 1 << 53

// Groups splits ops into its atomic groups, each with the index of its first op. It is
// for writers of stores.
func Groups(ops []Op) iter.Seq2[int, []Op] {
	return func(yield func(int, []Op) bool) {
		for from := 0; from < len(ops); {
			to := groupEnd(ops, from)
			if !yield(from, ops[from:to]) {
				return
			}
			from = to
		}
	}
}

func groupEnd(ops []Op, from int) int {
	to := from + 1
	for to < len(ops) && ops[to].Key == ops[from].Key && !ops[to].NewGroup {
		to++
	}
	return to
}

// Validate returns what is wrong with ops apart from any store's state: [ErrOp],
// [ErrTooLarge], [ErrInterval], [ErrNoCount], [ErrNoLimit] or [ErrOverflow]. It is for
// writers of stores, who call it before the first change.
func Validate(ops []Op) error {
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
func validate(op *Op, before []Op) error {
	switch {
	case op.Rule.layout.Algorithm == 0:
		return fmt.Errorf("%w: zero Rule", ErrOp)
	case op.Kind < Take || op.Kind > Reset:
		return fmt.Errorf("%w: %v", ErrOp, op.Kind)
	case len(op.Key) == 0 || len(op.Key) > MaxKeyLen:
		return fmt.Errorf("%w: key of %d bytes, want 1 to %d", ErrOp, len(op.Key), MaxKeyLen)
	}
	switch op.Kind {
	case Take, Peek, Add:
		if err := validateN(op, before); err != nil {
			return err
		}
	}
	if err := validatePrepaid(op, before); err != nil {
		return err
	}
	switch op.Kind {
	case Add, Count:
		return validateInterval(op)
	}
	return nil
}

// validateN asks what the limit says before what can be counted: more than the limit is the
// caller's mistake, also if it is too much to count, and where the rule has no limit.
func validateN(op *Op, before []Op) error {
	r := &op.Rule
	switch {
	case op.N < 0:
		return fmt.Errorf("%w: n is %d, which is negative", ErrOp, op.N)
	case op.N == 0 && op.Kind != Add:
		return fmt.Errorf("%w: n is 0, want at least 1", ErrOp)
	case op.Kind != Add && r.layout.Limit == 0:
		return fmt.Errorf("%w: %v of %v", ErrNoLimit, op.Kind, op.Rule)
	case op.Kind != Add && op.N > r.layout.Burst:
		return fmt.Errorf("%w: n is %d, limit is %d", ErrTooLarge, op.N, r.layout.Burst)
	case op.N > r.most():
		return fmt.Errorf("%w: %w: n is %d, want at most %d", ErrTooLarge, ErrOverflow, op.N, r.most())
	}
	switch n := op.N + pending(before, r); {
	case op.Kind == Take && n > r.layout.Burst:
		return fmt.Errorf("%w: n is %d, limit is %d", ErrTooLarge, n, r.layout.Burst)
	case n > r.most():
		return fmt.Errorf("%w: %d units in one group", ErrOverflow, n)
	}
	return nil
}

// most returns how many units an op and a counter can have, so that the arithmetic stays exact.
func (r *Rule) most() int64 {
	if r.layout.Algorithm == AlgorithmGCRA {
		return gcra.Most(r.layout.Per)
	}
	return maxCount
}

func validateInterval(op *Op) error {
	switch r := &op.Rule; {
	case op.Interval < 0:
		return fmt.Errorf("%w: interval is %v, want more than 0", ErrOp, op.Interval)
	case r.layout.Algorithm == AlgorithmGCRA && (op.Kind == Count || op.Interval > 0):
		return fmt.Errorf("%w: %v", ErrNoCount, op.Rule)
	case op.Interval == 0:
	case r.layout.Algorithm == AlgorithmWindow && op.Interval != r.Per():
		return fmt.Errorf("%w: %v, want %v", ErrInterval, op.Interval, r.Per())
	case op.Interval > r.Span():
		return fmt.Errorf("%w: %v > %v", ErrInterval, op.Interval, r.Span())
	}
	return nil
}

// pending is what the ops of a group charge to r's counter; in a group, a take has to
// pass together with those before it.
func pending(ops []Op, r *Rule) int64 {
	var n int64
	for i := range ops {
		if ops[i].charges() && ops[i].Rule.layout.ID == r.layout.ID {
			n += ops[i].N
		}
	}
	return n
}

// charges tells whether the op charges units, if it does what it asks for.
func (op *Op) charges() bool { return (op.Kind == Take || op.Kind == Add) && op.N > 0 }
