package ratelimit

import (
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// Result is the result of one [Op].
//
// For example, a limit is 10 over 60 s, and 8 units are used. A take of 1 is Allowed, with Limit 10, Remaining 1,
// RetryAfter 0 and ResetAfter up to 65 s. Then a take of 2 is not Allowed but Violated, with Remaining 1. Its
// RetryAfter is the time until enough units have aged out.
type Result struct {
	// Allowed reports whether units were taken, added or given back. For a Peek, it reports whether they would be
	// taken.
	Allowed bool
	// Violated reports whether the rule of this op denied, and not only another rule of its group.
	Violated bool
	// Source is the store or the layer that has answered.
	Source Source
	// Limit is the rule's limit, 0 if it only counts.
	Limit int64
	// Remaining is the largest n that passes now, or 0 if the rule has no limit. It can be larger than Limit if a
	// GCRA's burst is larger.
	Remaining int64
	// RetryAfter is the time until this n passes, or, after a charge, until the next unit passes, if there are no
	// other charges. 0 means now, and MaxDuration means MaxDuration or longer.
	RetryAfter time.Duration
	// ResetAfter is the time until the full quota is available again, if nothing is charged.
	ResetAfter time.Duration
	// Blocked is the remaining time of the [Block] that this Take or Peek met or began. The caller need not ask the
	// store again before it ends.
	Blocked time.Duration
	// Count is the number of units in the op's interval, for Count and Add.
	Count int64
	// Receipt identifies the charge of a Take or Add for a Refund.
	Receipt Receipt

	more *details // nil for an op's result
}

// details holds data of a policy's or a limiter's result that an op's result does not have.
type details struct {
	denied DeniedError // the error, if the result is a denial
	each   []Result    // the results of several rules, or nil
}

// Each returns the results of the single rules, in their order, if a [Limiter] or a policy has several rules.
// Otherwise, it returns nil. The caller must not modify the slice.
func (r Result) Each() []Result {
	if r.more == nil {
		return nil
	}
	return r.more.each
}

// Source is the part that has answered an op: the store, or one of the layers of package layer.
type Source uint8

// The sources.
const (
	FromStore     Source = iota // the store itself
	FromAllowList               // the key is always allowed
	FromDenyList                // the key is always denied
	FromShadow                  // the rule is only tried out, and never denies
	FromDenyCache               // the store denied before
	FromFailover                // the store failed, and the layer has answered
	FromPrepaid                 // units that were taken in advance
)

var sourceNames = [...]string{
	FromStore: "store", FromAllowList: "allow list", FromDenyList: "deny list", FromShadow: "shadow",
	FromDenyCache: "deny cache", FromFailover: "failover", FromPrepaid: "prepaid",
}

// String returns the source's name in lower case.
func (s Source) String() string {
	if int(s) >= len(sourceNames) {
		return fmt.Sprintf("Source(%d)", uint8(s))
	}
	return sourceNames[s]
}

// ofRule returns the result of the rule with index i.
func (r *Result) ofRule(i int) *Result {
	if each := r.Each(); each != nil {
		return &each[i]
	}
	return r
}

// Receipt identifies a charge for the store that made it. The zero Receipt refunds nothing. A receipt with a smaller
// N refunds a part of the charge. The fields are for stores and for layers around them.
type Receipt struct {
	Counter uint64 // a hash of the key and of the counter's rule
	N       int64  // units
	// At is the bucket's number or end, the window's end, or the time of the charge in microseconds.
	At int64
	// Generation tells the counter from one that was reset or forgotten before. For a GCRA, it is the counter's value after this charge.
	Generation int64
}

// Err returns nil if the result is allowed, otherwise a [*DeniedError].
func (r Result) Err() error {
	switch {
	case r.Allowed:
		return nil
	case r.more != nil:
		return &r.more.denied
	}
	return &DeniedError{Limit: r.Limit, RetryAfter: r.RetryAfter}
}

// RetrySeconds returns RetryAfter in whole seconds, rounded up. For a denial it is at least 1, as Retry-After is.
func (r Result) RetrySeconds() int64 {
	if r.Allowed {
		return problem.Seconds(r.RetryAfter)
	}
	return problem.RetrySeconds(r.RetryAfter)
}

// mergeResults returns the result of several rules together: the units that all of them leave, and the longest of the
// waits. Rules that are only tried out count only for Allowed, unless there are no others.
func mergeResults(results []Result) Result {
	merged, allowed := results[0], true
	for _, r := range results {
		allowed = allowed && r.Allowed
		switch {
		case r.Source == FromShadow:
		case merged.Source == FromShadow:
			merged = r
		default:
			merged = stricter(merged, r)
		}
	}
	merged.Allowed, merged.Count, merged.Receipt = allowed, results[0].Count, Receipt{}
	merged.more = &details{each: results, denied: DeniedError{Limit: merged.Limit, RetryAfter: merged.RetryAfter}}
	return merged
}

// stricter returns the result that has the longer wait or, if the waits are equal, fewer units. Each number in the result
// is the stricter of the two numbers.
func stricter(a, b Result) Result {
	out := a
	if b.RetryAfter > a.RetryAfter || b.RetryAfter == a.RetryAfter && b.Remaining < a.Remaining {
		out = b
	}
	out.Violated = a.Violated || b.Violated
	out.Remaining = min(a.Remaining, b.Remaining)
	out.RetryAfter = max(a.RetryAfter, b.RetryAfter)
	out.ResetAfter = max(a.ResetAfter, b.ResetAfter)
	return out
}
