package layer

import (
	"context"
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/internal/errtext"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// local counts with this process's share of each limit while the store fails.
type local struct {
	store    *memstore.Store
	known    *denialTable // what the store last reported as remaining
	replicas int64
}

func newLocal(o FailoverOptions) (*local, error) {
	store, err := memstore.New(memstore.Options{MaxSubjects: o.Keys})
	if err != nil {
		return nil, errtext.Prefix("layer: FailoverOptions: ", "memstore", err)
	}
	return &local{store: store, known: newDenialTable(o.Keys), replicas: int64(o.Replicas)}, nil
}

// observeRemaining keeps what the store reports as remaining, for rules that may be counted locally.
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
		set, tag := f.local.known.setFor(op.Key)
		set.addLocked(tag, &denial{
			key: op.Key, rule: op.Rule, n: deniesNone, until: sent + res.ResetAfter, remaining: res.Remaining,
		}, f.now())
	}
}

// do runs a group with this process's share of each limit. A take of more than the share is
// denied: it may pass when the store is back.
func (l *local) do(ctx context.Context, ops []ratelimit.Op, retry, now time.Duration) ([]ratelimit.Result, error) {
	shares := make([]ratelimit.Op, len(ops))
	for i := range ops {
		shares[i] = ops[i]
		shares[i].Rule = l.shareOf(ops[i].Rule)
		if ops[i].Rule.Limit() > 0 {
			l.chargeRemaining(ctx, &ops[i], shares[i].Rule, now)
		}
	}
	results, err := l.store.Do(ctx, shares)
	if errors.Is(err, ratelimit.ErrTooLarge) {
		results = make([]ratelimit.Result, len(ops))
		for i := range results {
			results[i] = ratelimit.Result{Violated: ops[i].Kind != ratelimit.Add, RetryAfter: retry}
		}
		return results, nil
	}
	return results, err
}

// shareOf returns the rule that this process counts by.
func (l *local) shareOf(r ratelimit.Rule) ratelimit.Rule {
	if l.replicas == 1 || r.Limit() == 0 {
		return r
	}
	share := r.WithLimit(max(1, r.Limit()/l.replicas))
	if share.Burst() == r.Burst() && r.Algorithm() == "gcra" { // its burst is set apart
		share = share.WithBurst(max(1, r.Burst()/l.replicas))
	}
	// The rule's numbers were valid, and so are smaller ones.
	return share
}

// chargeRemaining charges a local counter with what the store reported as used, if that is more than it
// has counted. The units count as used now, which is never earlier than they were.
func (l *local) chargeRemaining(ctx context.Context, op *ratelimit.Op, share ratelimit.Rule, now time.Duration) {
	set, tag := l.known.setFor(op.Key)
	if set.find(tag, op.Key, op.Rule, now) == nil {
		return
	}
	set.mu.Lock() // other callers wait until the counter is charged
	defer set.mu.Unlock()
	d := set.find(tag, op.Key, op.Rule, now)
	if d == nil {
		return
	}
	remaining := max(0, d.remaining-(d.rule.Burst()-op.Rule.Burst()))
	remaining = min((remaining+l.replicas-1)/l.replicas, share.Burst())
	charge := ratelimit.Op{Rule: share, Key: op.Key, N: 1, Kind: ratelimit.Peek}
	res, err := l.store.DoOne(ctx, charge)
	if err == nil && res.Remaining > remaining {
		charge.Kind, charge.N = ratelimit.Add, res.Remaining-remaining
		_, err = l.store.DoOne(ctx, charge)
	}
	if err == nil { // otherwise ctx has ended, and the next caller charges it
		set.removeLocked(op.Key, op.Rule)
	}
}
