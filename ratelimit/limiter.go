package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// Limiter takes units from one or more rules in a store. A take charges a key under all of the rules or under none. A
// Limiter is safe for concurrent use. Each method makes one store call.
//
// A key is used unchanged as the subject in the store. If limiters share a store but must not share counters, give
// their keys different prefixes, as in "login:192.0.2.1".
type Limiter struct {
	store Store // runs each op for all rules
	rule  Rule  // the first rule
}

// NewLimiter returns a limiter with one or more rules. If there are several rules, each needs a limit and a different
// name. NewLimiter returns an error if store is nil, if there are no rules, or if a rule is invalid.
func NewLimiter(store Store, rules ...Rule) (*Limiter, error) {
	err := checkRules("rules", rules)
	switch {
	case option.IsNil(store):
		err = errors.New("store is nil")
	case len(rules) == 0:
		err = errors.New("no rules")
	}
	if err != nil {
		return nil, fmt.Errorf("ratelimit: NewLimiter: %w", err)
	}
	return &Limiter{storeOf(store, slices.Clone(rules)), rules[0]}, nil
}

// storeOf returns a store that runs an op of the first rule with every rule.
func storeOf(store Store, rules []Rule) Store {
	if len(rules) == 1 {
		return store
	}
	return &jointStore{store, rules}
}

// checkRules returns an error if a rule is invalid, or if a limiter cannot have all of the rules.
func checkRules(field string, rules []Rule) error {
	for i, r := range rules {
		if err := r.Err(); err != nil {
			return option.Prefix(fmt.Sprintf("%s[%d]: ", field, i), "ratelimit", err)
		}
		if len(rules) > 1 && r.Limit() == 0 {
			return option.WithText(fmt.Sprintf("%s[%d] has no limit, as several must: %v", field, i, r), ErrNoLimit)
		}
		for _, before := range rules[:i] {
			if before.Name() == r.Name() {
				return fmt.Errorf("%s[%d] has the same name as another, %q: see Rule.WithName", field, i, r.Name())
			}
		}
	}
	return nil
}

// Take charges n units, at least 1, if all limits allow them, and otherwise nothing.
func (l *Limiter) Take(ctx context.Context, key string, n int64) (res Result, err error) {
	res, err = l.store.DoOne(ctx, Op{Rule: l.rule, Key: key, N: n, Kind: Take})
	return // the compiler inlines Take only if the call and the return are separate statements
}

// Peek returns the result that Take would have, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, key string, n int64) (Result, error) {
	return l.store.DoOne(ctx, Op{Rule: l.rule, Key: key, N: n, Kind: Peek})
}

// Add charges n units, which may be 0, even beyond the limit. The result shows the units that are left. If the store
// fails and there are several rules, some of them may have been charged.
func (l *Limiter) Add(ctx context.Context, key string, n int64) (Result, error) {
	return l.store.DoOne(ctx, Op{Rule: l.rule, Key: key, N: n, Kind: Add})
}

// Count returns the number of units that the first rule counted in the last interval. A zero interval means the
// rule's Per. It returns [ErrInterval] if the interval is longer than the rule's span, and [ErrNoCount] for a GCRA.
func (l *Limiter) Count(ctx context.Context, key string, interval time.Duration) (int64, error) {
	res, err := l.store.DoOne(ctx, Op{Rule: l.rule, Key: key, Kind: Count, Interval: interval})
	return res.Count, err
}

// AddCount combines Add and Count in one call. The count includes the n units. It returns [ErrStore] if a layer has
// answered for the store, because then nothing is counted.
func (l *Limiter) AddCount(ctx context.Context, key string, n int64, interval time.Duration) (int64, error) {
	if l.rule.Layout().Algorithm == layout.GCRA {
		return 0, fmt.Errorf("%w: %v", ErrNoCount, l.rule)
	}
	res, err := l.store.DoOne(ctx, Op{Rule: l.rule, Key: key, N: n, Kind: Add, Interval: interval})
	if err == nil && res.Source == FromFailover {
		return 0, fmt.Errorf("%w: the count is not known", ErrStore)
	}
	return res.Count, err
}

// Refund gives back the units that res charged to key, and reports whether all rules could do so. A rule cannot if
// res is a denial, a charge of another key, or older than the span (for a window, of an earlier window), if the
// counter was reset or forgotten since, or if anything was charged to a GCRA since. If only some of several rules
// can, those rules give the units back. Refund a result only once: the store does not remember refunds.
func (l *Limiter) Refund(ctx context.Context, key string, res Result) (bool, error) {
	back, err := refund(ctx, l.store, Op{Rule: l.rule, Key: key, Kind: Refund}, res)
	return back.Allowed, err
}

// refund gives back the units of res. storeOf has made the store, and op is the Refund without its receipt.
func refund(ctx context.Context, store Store, op Op, res Result) (Result, error) {
	joint, several := store.(*jointStore)
	if !several {
		op.Receipt = res.Receipt
		return store.DoOne(ctx, op)
	}
	ops, each := joint.ops(op), res.Each()
	if len(each) != len(ops) {
		return Result{}, fmt.Errorf("%w: refund of the results of %d rules, want %d", ErrOp, len(each), len(ops))
	}
	for i := range ops {
		ops[i].Receipt = each[i].Receipt
	}
	return joint.run(ctx, ops)
}

// Reset forgets the rules' counters of key.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	_, err := l.store.DoOne(ctx, Op{Rule: l.rule, Key: key, Kind: Reset})
	return err
}

// jointStore is a store that runs each op with several rules, except that it counts only with the first.
type jointStore struct {
	Store
	rules []Rule
}

func (j *jointStore) DoOne(ctx context.Context, op Op) (Result, error) {
	if op.Kind == Count {
		return j.Store.DoOne(ctx, op)
	}
	return j.run(ctx, j.ops(op))
}

// ops returns a copy of op for each rule. Only the copy for the first rule has an interval.
func (j *jointStore) ops(op Op) []Op {
	ops := make([]Op, len(j.rules))
	for i, r := range j.rules {
		op.Rule = r
		ops[i] = op
		op.Interval = 0
	}
	return ops
}

// run runs ops, one for each rule, and merges the results.
func (j *jointStore) run(ctx context.Context, ops []Op) (Result, error) {
	each, err := j.Do(ctx, ops)
	if err != nil {
		return Result{}, err
	}
	return mergeResults(each), nil
}
