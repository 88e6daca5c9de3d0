package memstore

import (
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// state is the state of one counter.
type state struct {
	*entry
	words []uint32 // of the counter's block in the arena; nil if the entry holds the whole state
}

// quota is the rest of a counter's quota: the units that pass now, and the microseconds until n units
// pass and until the quota is full.
type quota struct{ remaining, retry, reset int64 }

// algorithm is a way of counting. Its methods check and change the state of one counter, whose shard is locked. Times
// are microseconds of the store's clock, which may go back; prepaid is the op's Prepaid. A method may also drop expired
// charges from the state.
//
// All parameters and results are values, or point to memory of the store. So calls through the interface do not allocate.
type algorithm interface {
	// wordsNeeded returns the number of words that the state must have before n units are charged, or 0 if the entry
	// holds the whole state. The state of a new counter is zero.
	wordsNeeded(s state, r *rule, n, now, prepaid int64) int
	// begin initializes the state of a new counter. Its words are zero, and their number is the result of wordsNeeded.
	// No other counter has the same generation.
	begin(s state, r *rule, n, now, generation, prepaid int64)
	// reshape copies a state to other words. They are zero, and their number is the result of wordsNeeded.
	reshape(s state, r *rule, to []uint32, n, now, prepaid int64)
	// passes reports whether a take of n units is allowed, and whether n more units can be counted.
	passes(s state, r *rule, n, now int64) (allowed, fit bool)
	// quota returns the rest of the quota. It requires a rule with a limit.
	quota(s state, r *rule, n, now int64) quota
	// charge charges n units. The state must have room for them. The caller sets the Counter of the receipt.
	charge(s state, r *rule, n, now, generation, prepaid int64) ratelimit.Receipt
	// count returns the number of units charged in the last interval.
	count(s state, r *rule, interval, now int64) int64
	// refund undoes a charge, and reports whether the charge still counted. The receipt may be forged. generations is
	// the number of counters made so far.
	refund(s state, r *rule, c ratelimit.Receipt, now, generations int64) bool
}

var algorithms = [...]algorithm{
	storage.Buckets: &bucketAlgorithm{}, storage.Log: &logAlgorithm{},
	storage.Window: &windowAlgorithm{}, storage.GCRA: &gcraAlgorithm{},
}

// entryOnly is embedded in algorithms whose state fits into an entry.
type entryOnly struct{}

func (entryOnly) wordsNeeded(state, *rule, int64, int64, int64) int   { return 0 }
func (entryOnly) reshape(state, *rule, []uint32, int64, int64, int64) {}

// rule holds the numbers of a [ratelimit.Rule].
type rule storage.Layout

func ruleFor(op *ratelimit.Op) *rule { return (*rule)(op.Rule.Layout()) }

func (r *rule) algorithm() algorithm { return algorithms[r.Algorithm] }

// hasBlock reports whether the rule's state needs a block of the arena.
func (r *rule) hasBlock() bool {
	return r.Algorithm == storage.Buckets || r.Algorithm == storage.Log
}

// check sets res to the result of a take of n units, without Receipt and the effect of a Block.
func (r *rule) check(a algorithm, s state, n, now int64, res *ratelimit.Result) {
	if r.Limit == 0 {
		res.Allowed = true
		return
	}
	q := a.quota(s, r, n, now)
	res.Limit, res.Remaining, res.Allowed = r.Limit, q.remaining, n <= q.remaining
	if q.retry > 0 {
		res.RetryAfter = (*storage.Layout)(r).Wait(q.retry)
	}
	if q.reset > 0 {
		res.ResetAfter = (*storage.Layout)(r).Wait(q.reset)
	}
}

// freshResult returns the result of check for a counter that does not exist.
func (r *rule) freshResult() ratelimit.Result {
	return ratelimit.Result{Allowed: true, Limit: r.Limit, Remaining: r.Burst}
}

// ceilDiv returns a / b, rounded up. b is positive.
func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

// floorDiv returns a / b, rounded down. b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
