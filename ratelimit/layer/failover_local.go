package layer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// local counts while the store can't be asked, with this process's share of each limit.
type local struct {
	store    *memstore.Store
	known    *notes // what the store said that remains
	replicas int64
	start    time.Time
}

func newLocal(o FailoverOptions) (*local, error) {
	store, err := memstore.New(memstore.Options{MaxSubjects: o.Keys})
	if err != nil {
		return nil, fmt.Errorf("layer: FailoverOptions: %w", err)
	}
	return &local{store: store, known: newNotes(o.Keys), replicas: int64(o.Replicas), start: time.Now()}, nil
}

// now is 0 if there is no local.
func (l *local) now() time.Duration {
	if l == nil {
		return 0
	}
	return time.Since(l.start)
}

// learn notes what the store says that remains of counters that may be counted here.
func (l *local) learn(f *failover, ops []ratelimit.Op, results []ratelimit.Result, sent time.Duration) {
	if l == nil {
		return
	}
	for i := range ops {
		op, res := &ops[i], &results[i]
		undone := !res.Allowed && (op.Kind == ratelimit.Refund || op.Kind == ratelimit.Reset)
		if undone || res.Source != ratelimit.FromStore || op.Rule.Limit() == 0 || op.Kind == ratelimit.Count || f.mode(op.Rule) != Local {
			continue
		}
		set, tag := l.known.place(op.Key)
		set.replace(tag, &note{key: op.Key, rule: op.Rule, until: sent + res.ResetAfter, remaining: res.Remaining}, l.now())
	}
}

// do runs a group by the shares of its rules. A take of more than a share is a denial: it
// can pass when the store is back.
func (l *local) do(ctx context.Context, ops []ratelimit.Op, wait time.Duration) ([]ratelimit.Result, error) {
	shares := make([]ratelimit.Op, len(ops))
	for i := range ops {
		shares[i] = ops[i]
		shares[i].Rule = l.share(ops[i].Rule)
		if ops[i].Rule.Limit() > 0 {
			l.begin(ctx, &ops[i], shares[i].Rule)
		}
	}
	results, err := l.store.Do(ctx, shares)
	if errors.Is(err, ratelimit.ErrTooLarge) {
		results = make([]ratelimit.Result, len(ops))
		for i := range results {
			results[i] = ratelimit.Result{Violated: ops[i].Kind != ratelimit.Add, RetryAfter: wait}
		}
		return results, nil
	}
	return results, err
}

// share returns the rule by which this process counts.
func (l *local) share(r ratelimit.Rule) ratelimit.Rule {
	if l.replicas == 1 || r.Limit() == 0 {
		return r
	}
	share, err := r.WithLimit(max(1, r.Limit()/l.replicas))
	if err == nil && share.Burst() == r.Burst() && r.Algorithm() == "gcra" { // a burst of its own
		share, err = share.WithBurst(max(1, r.Burst()/l.replicas))
	}
	if err != nil {
		return r // its limit was fine, and a smaller one is
	}
	return share
}

// begin charges the counter of op with what the store said to be used, if that is more than
// was used here. The units are taken to be used just now, which is no earlier than they were.
func (l *local) begin(ctx context.Context, op *ratelimit.Op, share ratelimit.Rule) {
	set, tag := l.known.place(op.Key)
	if set.find(tag, op.Key, &op.Rule, l.now()) == nil {
		return
	}
	set.mu.Lock() // others wait until it is done
	defer set.mu.Unlock()
	t := set.find(tag, op.Key, &op.Rule, l.now())
	if t == nil {
		return
	}
	remains := max(0, t.remaining-(t.rule.Burst()-op.Rule.Burst()))
	remains = min((remains+l.replicas-1)/l.replicas, share.Burst())
	here := ratelimit.Op{Rule: share, Key: op.Key, N: 1, Kind: ratelimit.Peek}
	res, err := l.store.DoOne(ctx, here)
	if err == nil && res.Remaining > remains {
		here.Kind, here.N = ratelimit.Add, res.Remaining-remains
		_, err = l.store.DoOne(ctx, here)
	}
	if err == nil { // else ctx has ended, and the next one begins
		set.remove(op.Key, &op.Rule)
	}
}
