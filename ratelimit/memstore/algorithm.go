package memstore

import (
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// state is what the memory store remembers of one counter. It is passed by value.
type state struct {
	*entry
	words []uint32 // of its block, nil if the entry is enough
}

// algorithm is a way of counting: check and charge over the state of one counter. Times
// are microseconds of the clock, and may go back. ahead is the op's Prepaid, which some
// algorithms need not know. The caller holds the lock. Every method may
// bring a state up to date, as long as no answer changes by it.
//
// A rule finds its algorithm by a switch rather than by an interface, which would send every
// op to the heap. A new algorithm is a case in each switch below.
type algorithm interface {
	// wordsNeeded returns how many words the state has to have before n units are charged, 0
	// if the entry is enough. For a new counter, s is zero.
	wordsNeeded(s state, r *rule, n, now, ahead int64) int
	// begin makes a state that of an untouched counter; a generation is never used twice. Its
	// words are zero, and as many as n units need.
	begin(s state, r *rule, n, now, generation, ahead int64)
	// reshape moves a state into the number of words that it needs before n units are
	// charged. They are zero.
	reshape(s state, r *rule, to []uint32, n, now, ahead int64)
	// passes reports whether a take of n is allowed, and whether n more units fit: whether they
	// can be counted at all.
	passes(s state, r *rule, n, now int64) (allowed, fit bool)
	// check sets what a take of n would get, in all fields but Receipt and Count. It
	// does not set zeros.
	check(s state, r *rule, n, now int64, res *ratelimit.Result)
	// charge counts n units, which fit and for which there are words. Its receipt lacks the
	// Counter.
	charge(s state, r *rule, n, now, ahead int64) ratelimit.Receipt
	// count returns the units of the last interval.
	count(s state, r *rule, interval, now int64) int64
	// refund undoes a charge of this counter and reports whether it was still kept. The caller
	// may have made up the receipt.
	refund(s state, r *rule, c ratelimit.Receipt, now int64) bool
}

var _ = []algorithm{bucketAlgorithm{}, logAlgorithm{}, windowAlgorithm{}, gcraAlgorithm{}}

// rule is a [ratelimit.Rule] as the store reads it.
type rule storage.Layout

func ruleFor(op *ratelimit.Op) *rule { return (*rule)(op.Rule.Layout()) }

// hasBlock reports whether the rule's state needs a block of the arena.
func (r *rule) hasBlock() bool {
	return r.Algorithm == storage.Buckets || r.Algorithm == storage.Log
}

func (r *rule) wordsNeeded(s state, n, now, ahead int64) int {
	switch r.Algorithm {
	case storage.Buckets:
		return bucketAlgorithm{}.wordsNeeded(s, r, n, now, ahead)
	case storage.Log:
		return logAlgorithm{}.wordsNeeded(s, r, n, now, ahead)
	default:
		return 0
	}
}

func (r *rule) begin(s state, n, now, generation, ahead int64) {
	switch r.Algorithm {
	case storage.Buckets:
		bucketAlgorithm{}.begin(s, r, n, now, generation, ahead)
	case storage.Log:
		logAlgorithm{}.begin(s, r, n, now, generation, ahead)
	case storage.Window:
		windowAlgorithm{}.begin(s, r, n, now, generation, ahead)
	default:
		gcraAlgorithm{}.begin(s, r, n, now, generation, ahead)
	}
}

func (r *rule) reshape(s state, to []uint32, n, now, ahead int64) {
	if r.Algorithm == storage.Buckets {
		bucketAlgorithm{}.reshape(s, r, to, n, now, ahead)
	} else {
		logAlgorithm{}.reshape(s, r, to, n, now, ahead)
	}
}

func (r *rule) passes(s state, n, now int64) (allowed, fit bool) {
	switch r.Algorithm {
	case storage.Buckets:
		return bucketAlgorithm{}.passes(s, r, n, now)
	case storage.Log:
		return logAlgorithm{}.passes(s, r, n, now)
	case storage.Window:
		return windowAlgorithm{}.passes(s, r, n, now)
	default:
		return gcraAlgorithm{}.passes(s, r, n, now)
	}
}

func (r *rule) check(s state, n, now int64, res *ratelimit.Result) {
	switch r.Algorithm {
	case storage.Buckets:
		bucketAlgorithm{}.check(s, r, n, now, res)
	case storage.Log:
		logAlgorithm{}.check(s, r, n, now, res)
	case storage.Window:
		windowAlgorithm{}.check(s, r, n, now, res)
	default:
		gcraAlgorithm{}.check(s, r, n, now, res)
	}
}

func (r *rule) charge(s state, n, now, ahead int64) ratelimit.Receipt {
	switch r.Algorithm {
	case storage.Buckets:
		return bucketAlgorithm{}.charge(s, r, n, now, ahead)
	case storage.Log:
		return logAlgorithm{}.charge(s, r, n, now, ahead)
	case storage.Window:
		return windowAlgorithm{}.charge(s, r, n, now, ahead)
	default:
		return gcraAlgorithm{}.charge(s, r, n, now, ahead)
	}
}

func (r *rule) count(s state, interval, now int64) int64 {
	switch r.Algorithm {
	case storage.Buckets:
		return bucketAlgorithm{}.count(s, r, interval, now)
	case storage.Log:
		return logAlgorithm{}.count(s, r, interval, now)
	case storage.Window:
		return windowAlgorithm{}.count(s, r, interval, now)
	default:
		return 0 // a GCRA's count was refused before
	}
}

func (r *rule) refund(s state, c ratelimit.Receipt, now int64) bool {
	switch r.Algorithm {
	case storage.Buckets:
		return bucketAlgorithm{}.refund(s, r, c, now)
	case storage.Log:
		return logAlgorithm{}.refund(s, r, c, now)
	case storage.Window:
		return windowAlgorithm{}.refund(s, r, c, now)
	default:
		return gcraAlgorithm{}.refund(s, r, c, now)
	}
}

// freshResult is the check of a counter that doesn't exist, whatever the algorithm.
func (r *rule) freshResult() ratelimit.Result {
	return ratelimit.Result{Allowed: true, Limit: r.Limit, Remaining: r.Burst}
}

// ceilDiv and floorDiv divide by a positive b.
func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
