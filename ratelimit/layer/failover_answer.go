package layer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// UnavailableError means that the store failed, and that either the rule's [Mode] is Closed or the op needs the
// store. It wraps [ratelimit.ErrStore], so a middleware with FailOpen lets the request through. Its response is a
// 503.
type UnavailableError struct {
	// RetryAfter is the maximum time until the store is called again.
	RetryAfter time.Duration
	// Err is the failure of the store.
	Err error
}

// Error implements error.
func (e *UnavailableError) Error() string {
	cause := strings.TrimPrefix(e.Err.Error(), ratelimit.ErrStore.Error()+": ")
	return fmt.Sprintf("%v: %s (retry after %v)", ratelimit.ErrStore, cause, e.RetryAfter)
}

// Unwrap returns ErrStore and Err.
func (e *UnavailableError) Unwrap() []error { return []error{ratelimit.ErrStore, e.Err} }

// RetrySeconds returns RetryAfter in whole seconds, rounded up and at least 1, for a Retry-After header.
func (e *UnavailableError) RetrySeconds() int64 { return problem.RetrySeconds(e.RetryAfter) }

// Problem returns the 503 response for the error.
func (e *UnavailableError) Problem() (status int, members map[string]any) {
	return http.StatusServiceUnavailable, map[string]any{
		"type":   "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
		"title":  "Temporary reduced capacity",
		"detail": "The rate limit cannot be checked at the moment. Try again later.",
	}
}

// answer returns the results of ops after the store failed with err.
func (f *failover) answer(ctx context.Context, ops []ratelimit.Op, err error) ([]ratelimit.Result, error) {
	unavailable := &UnavailableError{RetryAfter: f.o.Retry, Err: err}
	for i := range ops {
		if !canDeny(ops[i].Kind) || f.mode(ops[i].Rule) == Closed {
			return nil, unavailable
		}
	}
	out := make([]ratelimit.Result, 0, len(ops))
	for _, group := range storage.Groups(ops) {
		results, err := f.answerGroup(ctx, group)
		if err != nil {
			unavailable.Err = err
			return nil, unavailable
		}
		out = append(out, results...)
	}
	for i := range out {
		out[i].Source, out[i].Limit = ratelimit.FromFailover, ops[i].Rule.Limit()
		if !ops[i].Rule.Layout().Concurrent {
			out[i].Receipt = ratelimit.Receipt{}
		}
	}
	return out, nil
}

// releaseLocally runs refunds of units of a [ratelimit.Concurrent] that Local has counted. It returns nil if ops are something
// else. Receipts of the store do not fit the local counters.
func (f *failover) releaseLocally(ctx context.Context, ops []ratelimit.Op) []ratelimit.Result {
	if f.local == nil || slices.ContainsFunc(ops, func(op ratelimit.Op) bool { return op.Kind != ratelimit.Refund }) {
		return nil
	}
	results, err := f.local.Do(ctx, ops)
	if err != nil || !slices.ContainsFunc(results, func(r ratelimit.Result) bool { return r.Allowed }) {
		return nil
	}
	for i := range results {
		results[i].Source = ratelimit.FromFailover
	}
	return results
}

func (f *failover) mode(r ratelimit.Rule) Mode {
	if f.o.ModeFor != nil {
		return min(f.o.ModeFor(r), Local)
	}
	return f.o.Mode
}

// answerGroup counts the ops of a group locally if one of them has the mode Local. Otherwise, it allows them.
func (f *failover) answerGroup(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	out := make([]ratelimit.Result, len(ops))
	for i := range ops {
		if f.mode(ops[i].Rule) == Local {
			return f.countLocally(ctx, ops)
		}
		out[i].Allowed, out[i].Remaining = true, ops[i].Rule.Burst()
	}
	return out, nil
}

// observeRemaining records the remaining units that the store reported for rules with the mode Local.
func (f *failover) observeRemaining(ops []ratelimit.Op, results []ratelimit.Result, sent time.Duration) {
	if f.local == nil {
		return
	}
	for i := range ops {
		op, res := &ops[i], &results[i]
		undone := !res.Allowed && (op.Kind == ratelimit.Refund || op.Kind == ratelimit.Reset)
		if undone || res.Source != ratelimit.FromStore || op.Rule.Limit() == 0 || op.Kind == ratelimit.Count || f.mode(op.Rule) != Local {
			continue
		}
		set, tag := f.known.setFor(op.Key)
		set.replace(tag, &denial{
			key: op.Key, rule: op.Rule, n: deniesNone, until: sent + res.ResetAfter, remaining: res.Remaining,
		}, f.now())
	}
}

// countLocally runs a group with this process's share of each limit. It denies a take that is larger than the share.
// Such a take may pass when the store is back.
func (f *failover) countLocally(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	shares := slices.Clone(ops)
	for i := range ops {
		shares[i].Rule = f.shareOf(ops[i].Rule)
		if ops[i].Rule.Limit() > 0 {
			f.chargeUsed(ctx, &ops[i], shares[i].Rule)
		}
	}
	results, err := f.local.Do(ctx, shares)
	if errors.Is(err, ratelimit.ErrTooLarge) {
		denial := ratelimit.Result{Violated: ops[0].Kind != ratelimit.Add, RetryAfter: f.o.Retry}
		return slices.Repeat([]ratelimit.Result{denial}, len(ops)), nil
	}
	return results, err
}

// shareOf returns r with this process's share of the limit.
func (f *failover) shareOf(r ratelimit.Rule) ratelimit.Rule {
	replicas := int64(f.o.Replicas)
	if replicas == 1 || r.Limit() == 0 {
		return r
	}
	share := r.WithLimit(max(1, r.Limit()/replicas))
	if share.Burst() == r.Burst() && r.Algorithm() == "gcra" { // the burst does not depend on the limit
		share = share.WithBurst(max(1, r.Burst()/replicas))
	}
	return share
}

// chargeUsed charges a local counter so that no more units remain in it than the store reported. The charge is made
// at the current time, so its units leave the window no earlier than they do in the store.
func (f *failover) chargeUsed(ctx context.Context, op *ratelimit.Op, share ratelimit.Rule) {
	set, tag := f.known.setFor(op.Key)
	if set.find(tag, op.Key, op.Rule, f.now()) == nil {
		return
	}
	set.mu.Lock() // the other callers of the key wait until the counter is charged
	defer set.mu.Unlock()
	d := set.find(tag, op.Key, op.Rule, f.now())
	if d == nil {
		return
	}
	replicas := int64(f.o.Replicas)
	remaining := min((d.remaining+replicas-1)/replicas, share.Burst())
	charge := ratelimit.Op{Rule: share, Key: op.Key, N: 1, Kind: ratelimit.Peek}
	res, err := f.local.DoOne(ctx, charge)
	if err == nil && res.Remaining > remaining {
		charge.Kind, charge.N = ratelimit.Add, res.Remaining-remaining
		_, err = f.local.DoOne(ctx, charge)
	}
	if err == nil { // after an error, such as the end of ctx, the next caller charges the counter
		set.removeLocked(op.Key, op.Rule)
	}
}
