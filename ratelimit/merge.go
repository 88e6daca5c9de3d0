package ratelimit

// mergeResults returns the result of several rules together, one of each: the units that all of
// them leave, and the longest of the waits. Rules without a limit, or that are only tried out
// ([FromShadow]), count only for Allowed, unless there are no others.
func mergeResults(rules []Rule, results []Result) Result {
	merged, found, allowed := Result{Source: results[0].Source}, false, true
	for i, r := range results {
		allowed = allowed && r.Allowed
		switch {
		case r.isUnenforced(rules[i]):
		case !found:
			merged, found = r, true
		default:
			merged = stricter(merged, r)
		}
	}
	if len(results) > 1 {
		merged.Receipt = Receipt{}
	} else {
		merged.Receipt = results[0].Receipt
	}
	merged.Allowed, merged.Count = allowed, results[0].Count
	return merged
}

// stricter returns the result with the longer wait, or of equal ones the result that leaves less,
// with what both leave together.
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
