package ratelimit

// algorithm is a way of counting. The zero algorithm marks a zero [Rule].
type algorithm uint8

const (
	bucketed algorithm = iota + 1
	logged
	windowed
	leaky
)

var algorithmNames = [...]string{bucketed: "buckets", logged: "log", windowed: "window", leaky: "gcra"}

func (a algorithm) String() string { return algorithmNames[a] }

// state is what the memory store remembers of one counter. It is passed by value.
type state struct {
	*entry
	words []uint32 // of its block, nil if the entry is enough
}

// pair is an algorithm's check and charge over the state of one counter in memory. Times
// are microseconds, and are whatever the clock says: they may go back. ahead is the op's
// Ahead, which some pairs need not know. The caller holds the lock. A pair may bring a
// state up to date in every method, as long as no answer changes by it.
//
// A rule finds its pair by a switch rather than by an interface, which would send every
// op to the heap. A new algorithm is a constant above, a case in each switch below and a
// constructor of its rules.
type pair interface {
	// need returns how many words the state has to have before n units are charged, 0
	// if the entry is enough. For a new counter, s is zero.
	need(s state, r *Rule, n, now, ahead int64) int
	// begin makes a state that of an untouched counter; life is never used twice. Its
	// words are zero, and as many as n units need.
	begin(s state, r *Rule, n, now, life, ahead int64)
	// reshape moves a state into the number of words that it needs before n units are
	// charged. They are zero.
	reshape(s state, r *Rule, to []uint32, n, now, ahead int64)
	// fits tells whether n more units can be counted at all.
	fits(s state, r *Rule, n, now int64) bool
	// passes tells whether a take of n is allowed.
	passes(s state, r *Rule, n, now int64) bool
	// check says what a take of n would get, in all fields but Receipt and Count. It
	// leaves those, and what is zero.
	check(s state, r *Rule, n, now int64, res *Result)
	// charge counts n units, which fit and for which there are words. Its receipt lacks the
	// Counter.
	charge(s state, r *Rule, n, now, ahead int64) Receipt
	// count returns the units of the last interval.
	count(s state, r *Rule, interval, now int64) int64
	// refund undoes a charge of this counter and tells whether it was still kept. The receipt
	// may otherwise be anybody's invention.
	refund(s state, r *Rule, c Receipt, now int64) bool
}

var _ = []pair{bucketPair{}, logPair{}, windowPair{}, gcraPair{}}

// hasBlock tells whether the rule's state needs a block of the arena.
func (a algorithm) hasBlock() bool { return a == bucketed || a == logged }

func (r *Rule) need(s state, n, now, ahead int64) int {
	switch r.algorithm {
	case bucketed:
		return bucketPair{}.need(s, r, n, now, ahead)
	case logged:
		return logPair{}.need(s, r, n, now, ahead)
	default:
		return 0
	}
}

func (r *Rule) begin(s state, n, now, life, ahead int64) {
	switch r.algorithm {
	case bucketed:
		bucketPair{}.begin(s, r, n, now, life, ahead)
	case logged:
		logPair{}.begin(s, r, n, now, life, ahead)
	case windowed:
		windowPair{}.begin(s, r, n, now, life, ahead)
	default:
		gcraPair{}.begin(s, r, n, now, life, ahead)
	}
}

func (r *Rule) reshape(s state, to []uint32, n, now, ahead int64) {
	if r.algorithm == bucketed {
		bucketPair{}.reshape(s, r, to, n, now, ahead)
	} else {
		logPair{}.reshape(s, r, to, n, now, ahead)
	}
}

func (r *Rule) fits(s state, n, now int64) bool {
	switch r.algorithm {
	case bucketed:
		return bucketPair{}.fits(s, r, n, now)
	case logged:
		return logPair{}.fits(s, r, n, now)
	case windowed:
		return windowPair{}.fits(s, r, n, now)
	default:
		return gcraPair{}.fits(s, r, n, now)
	}
}

func (r *Rule) passes(s state, n, now int64) bool {
	switch r.algorithm {
	case bucketed:
		return bucketPair{}.passes(s, r, n, now)
	case logged:
		return logPair{}.passes(s, r, n, now)
	case windowed:
		return windowPair{}.passes(s, r, n, now)
	default:
		return gcraPair{}.passes(s, r, n, now)
	}
}

func (r *Rule) check(s state, n, now int64, res *Result) {
	switch r.algorithm {
	case bucketed:
		bucketPair{}.check(s, r, n, now, res)
	case logged:
		logPair{}.check(s, r, n, now, res)
	case windowed:
		windowPair{}.check(s, r, n, now, res)
	default:
		gcraPair{}.check(s, r, n, now, res)
	}
}

func (r *Rule) charge(s state, n, now, ahead int64) Receipt {
	switch r.algorithm {
	case bucketed:
		return bucketPair{}.charge(s, r, n, now, ahead)
	case logged:
		return logPair{}.charge(s, r, n, now, ahead)
	case windowed:
		return windowPair{}.charge(s, r, n, now, ahead)
	default:
		return gcraPair{}.charge(s, r, n, now, ahead)
	}
}

func (r *Rule) count(s state, interval, now int64) int64 {
	switch r.algorithm {
	case bucketed:
		return bucketPair{}.count(s, r, interval, now)
	case logged:
		return logPair{}.count(s, r, interval, now)
	case windowed:
		return windowPair{}.count(s, r, interval, now)
	default:
		return 0 // a GCRA's count was refused before
	}
}

func (r *Rule) refund(s state, c Receipt, now int64) bool {
	switch r.algorithm {
	case bucketed:
		return bucketPair{}.refund(s, r, c, now)
	case logged:
		return logPair{}.refund(s, r, c, now)
	case windowed:
		return windowPair{}.refund(s, r, c, now)
	default:
		return gcraPair{}.refund(s, r, c, now)
	}
}

// untouched is the check of a counter that doesn't exist, whatever the algorithm.
func (r *Rule) untouched() Result {
	return Result{Allowed: true, Limit: r.limit, Remaining: r.burst}
}
