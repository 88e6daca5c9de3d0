package ratelimit

import (
	"context"
	"fmt"
	"time"
)

// Store runs ops. It is safe for concurrent use.
//
// Do runs ops in order and returns one result for each. Consecutive takes on one key are a
// group, unless [Op.NewGroup] separates them, and so are consecutive refunds on one key. Every
// other op is a group of its own. A group is atomic. Of takes, all are charged or none: if one
// is denied, no result of the group is Allowed, and Violated marks the rules that denied. Of
// refunds, each gives back what it can.
//
// Do checks all ops before it changes anything. A failure of the store wraps
// [ErrStore]; groups before it may have been charged.
//
// DoOne does what Do does with a list of one.
//
// The store allocates the results. After a method has returned, the store reads neither the ops
// nor the results any more: they are the caller's. A type that embeds a Store, to change a
// method, has to change both. Package storage helps to write stores, and package storetest tests
// them.
type Store interface {
	Do(ctx context.Context, ops []Op) ([]Result, error)
	DoOne(ctx context.Context, op Op) (Result, error)
}

// Kind is what an [Op] does.
type Kind uint8

// The kinds. The zero Kind is invalid.
const (
	Take   Kind = iota + 1 // charge N, at least 1, if the limit allows it
	Peek                   // return what Take would, charge nothing
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
	N    int64  // units, up to 2^53 (GCRA: see [GCRA]); take, peek and add only
	Kind Kind

	// NewGroup begins a new group, even if the op before has the same key.
	NewGroup bool
	// Interval is what a count or an add counts over, up to the rule's span. Zero
	// means the rule's Per. A GCRA counts nothing: its adds leave this zero.
	Interval time.Duration
	// Receipt is the charge to refund.
	Receipt Receipt
	// Prepaid, of a take that is a group of its own, charges its units so that the rule is
	// kept whenever they are spent within that time; see [Op.ValidFor]. It is at most the
	// rule's Per, and MaxPrepaid.
	Prepaid time.Duration
}

// MaxKeyLen is the length of the longest key that a store accepts, in bytes.
const MaxKeyLen = 1024
