package ratelimit

// algorithm is a way of counting. The zero algorithm marks a zero [Rule].
type algorithm uint8

const (
	bucketed algorithm = iota + 1
	logged
	windowed
	leaky
)

// algorithms has the check/charge pair of each algorithm, which is all that the driver
// needs: a new one is a constant, an entry here and a constructor of its rules.
var algorithms = [...]struct {
	name string
	pair pair
}{
	bucketed: {"buckets", bucketPair{}},
	logged:   {"log", nil},
	windowed: {"window", nil},
	leaky:    {"gcra", nil},
}

func (a algorithm) String() string { return algorithms[a].name }

// pair is an algorithm over the state of one counter in memory. Times are microseconds,
// and are whatever the clock says: they may go back. The caller holds the subject's
// lock. The pair may bring a state up to date in every method, as long as no answer
// changes by it.
type pair interface {
	// fresh returns the state of an untouched counter; life is never used twice.
	fresh(r Rule, now, life int64) state
	// size returns the length of a fresh state.
	size(r Rule) int64
	// check says what a take of n would get, in all fields but Receipt and Count.
	check(s state, r Rule, n, now int64) Result
	// fits tells whether n more units can be counted at all.
	fits(s state, r Rule, n, now int64) bool
	// charge counts n units, which fit, and returns the state that holds them.
	charge(s state, r Rule, n, now int64) (state, Receipt)
	// count returns the units of the last interval.
	count(s state, r Rule, interval, now int64) int64
	// refund undoes a charge and tells whether it was still kept.
	refund(s state, r Rule, c Receipt, now int64) bool
}

// state is what a counter remembers: words that only its pair understands.
type state []int64

// untouched is the check of a counter that doesn't exist, whatever the algorithm.
func untouched(r Rule) Result {
	return Result{Allowed: true, Limit: r.limit, Remaining: r.limit}
}
