package ratelimit

import (
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// Kind is the action of an [Op].
type Kind uint8

// The kinds. The zero Kind is invalid.
const (
	Take   Kind = iota + 1 // charge N, at least 1, if the limit allows it
	Peek                   // return the result of a Take, charge nothing
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

// Op is one operation of a [Store] on the counter of a key and a rule.
type Op struct {
	Rule Rule
	Key  string // the subject, 1 to MaxKeyLen bytes
	N    int64  // units, up to 2^53 (GCRA: see [GCRA]); take, peek and add only
	Kind Kind

	// NewGroup begins a new group, even if the previous op has the same key.
	NewGroup bool
	// Tentative marks a take that may be refunded soon. A deny cache does not remember its denial, because refunds by
	// other processes may end the denial early.
	Tentative bool
	// Interval is the interval that a count or an add counts over, up to the rule's span. The zero value means the
	// rule's Per. An add of a GCRA counts nothing and leaves this zero.
	Interval time.Duration
	// Receipt is the charge to refund.
	Receipt Receipt
	// Prepaid makes a take charge its units so that they may be spent at any moment within this time without breaking
	// the rule; see [Op.ValidFor]. The take must be the only op of its group. It is at most the rule's Per, and
	// MaxPrepaid.
	Prepaid time.Duration
}

const (
	// MaxKeyLen is the length of the longest key that a store accepts, in bytes.
	MaxKeyLen = 1024
	// MaxPrepaid is the longest Prepaid of an op.
	MaxPrepaid = time.Hour
)

// ValidFor returns for how long the units of op, a take that res has allowed, may be spent without breaking the rule.
// The caller may count the time from any moment before op was sent. Without Prepaid it is 0, because units are spent
// when they are taken. The charge depends on the algorithm:
//
//   - A log charges the units at the end of Prepaid, so they count longer than units that are spent at once.
//   - A GCRA also charges the units that come back during Prepaid. An op with too little room for that is [ErrTooLarge].
//   - Buckets and windows charge the present bucket or window. The units are good until its end, which may come sooner
//     than Prepaid.
//
// To give back the unspent rest, Refund the receipt with N lowered to the rest. A caller whose clock is not the
// store's clock should stop a little earlier.
func (op Op) ValidFor(res Result) time.Duration {
	if op.Prepaid <= 0 || !res.Allowed {
		return 0
	}
	good := op.Prepaid
	switch r := &op.Rule; r.Layout().Algorithm {
	case layout.Window:
		good = min(good, res.ResetAfter)
	case layout.Buckets: // the newest bucket was charged, so it leaves the window last
		good = min(good, res.ResetAfter-layout.Duration(int64(r.Layout().Window)*r.Layout().Interval))
	}
	return max(0, good-time.Microsecond) // the store's clock has whole microseconds
}
