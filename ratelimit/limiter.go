package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/internal/errtext"
	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
	"github.com/lazyreq/lazyreq/ratelimit/internal/single"
)

// Limiter takes units from one rule in a store, or from several at once, such as 10 in a second
// and 1000 in a day: then a key is charged by all of them or by none. It is immutable and safe for
// concurrent use. Its methods cost one call of the store.
//
// A key is the subject in the store, as it is: limiters that share a store and must not
// share counters begin their keys with what they limit, as in "login:192.0.2.1".
type Limiter struct {
	store Store
	one   func(context.Context, Op) (Result, error)
	taker taker
	rule  *Rule // the first
	rules []Rule
}

// taker is a store whose takes are so fast that copies of the rule would show.
type taker interface {
	Take(ctx context.Context, r *Rule, key string, n int64) (Result, error)
}

// opTaker takes by a store's function for one op.
type opTaker func(context.Context, Op) (Result, error)

func (one opTaker) Take(ctx context.Context, r *Rule, key string, n int64) (Result, error) {
	return one(ctx, Op{Rule: *r, Key: key, N: n, Kind: Take})
}

// jointTaker is a limiter of several rules, which takes from all of them.
type jointTaker Limiter

func (t *jointTaker) Take(ctx context.Context, _ *Rule, key string, n int64) (Result, error) {
	return (*Limiter)(t).do(ctx, Op{Key: key, N: n, Kind: Take})
}

// NewLimiter returns a limiter by one or more rules. Several rules must have a limit each and
// different names. It returns an error if there is no store, no rule, or a wrong one.
func NewLimiter(store Store, rules ...Rule) (*Limiter, error) {
	switch {
	case option.IsNil(store):
		return nil, errors.New("ratelimit: NewLimiter: store is nil")
	case len(rules) == 0:
		return nil, errors.New("ratelimit: NewLimiter: no rules")
	}
	if err := checkRules("rules", rules); err != nil {
		return nil, fmt.Errorf("ratelimit: NewLimiter: %w", err)
	}
	for i, r := range rules {
		if r.Limit() == 0 && len(rules) > 1 {
			return nil, fmt.Errorf("ratelimit: NewLimiter: rules[%d] has no limit, as several must: %v", i, r)
		}
	}
	l := &Limiter{store: store, one: single.Func[Op, Result](store, ErrStore), rules: slices.Clone(rules)}
	l.rule = &l.rules[0]
	if t, ok := store.(taker); len(rules) > 1 {
		l.taker = (*jointTaker)(l)
	} else if ok {
		l.taker = t
	} else {
		l.taker = opTaker(l.one)
	}
	return l, nil
}

// checkRules returns what is wrong with rules that are asked together.
func checkRules(field string, rules []Rule) error {
	for i, r := range rules {
		if err := r.Err(); err != nil {
			return errtext.Prefix(fmt.Sprintf("%s[%d]: ", field, i), "ratelimit", err)
		}
		for _, before := range rules[:i] {
			if before.Name() == r.Name() {
				return fmt.Errorf("%s[%d] has the same name as another, %q: see Rule.WithName", field, i, r.Name())
			}
		}
	}
	return nil
}

// Rules returns the limiter's rules, which must not be changed.
func (l *Limiter) Rules() []Rule { return l.rules }

// Take charges n units, at least 1, if all limits allow them, otherwise nothing. (A take of 0
// would pass whatever the limit: a cost that is 0 by mistake would turn it off.)
func (l *Limiter) Take(ctx context.Context, key string, n int64) (Result, error) {
	return l.taker.Take(ctx, l.rule, key, n) // inlined, which spares a fast store's take a copy of its result
}

// Peek returns what Take would, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, key string, n int64) (Result, error) {
	return l.do(ctx, Op{Key: key, N: n, Kind: Peek})
}

// Add charges n units whatever the limit, and returns what is left then. An n of 0 charges
// nothing.
func (l *Limiter) Add(ctx context.Context, key string, n int64) (Result, error) {
	return l.do(ctx, Op{Key: key, N: n, Kind: Add})
}

// Count returns the units that the first rule counted in the last interval, which is at most the
// rule's span; zero means its Per. Longer is [ErrInterval]; of a GCRA it is [ErrNoCount].
func (l *Limiter) Count(ctx context.Context, key string, interval time.Duration) (int64, error) {
	res, err := l.one(ctx, Op{Rule: l.rules[0], Key: key, Kind: Count, Interval: interval})
	return res.Count, err
}

// AddCount is Add and Count in one call; the count includes the n units. It returns [ErrStore] if a
// layer stands in for the store: then nothing is counted.
func (l *Limiter) AddCount(ctx context.Context, key string, n int64, interval time.Duration) (int64, error) {
	if r := l.rules[0]; r.Layout().Algorithm == layout.GCRA {
		return 0, fmt.Errorf("%w: %v", ErrNoCount, r)
	}
	res, err := l.do(ctx, Op{Key: key, N: n, Kind: Add, Interval: interval})
	if err == nil && res.Source == FromFailover {
		return 0, fmt.Errorf("%w: the count is not known", ErrStore)
	}
	return res.Count, err
}

// Refund gives back what res charged to key, and reports whether it could: not if it was a
// denial, or a charge of another key, or is older than the span, or the counter was reset or
// forgotten since; a fixed window's only within the same window, a GCRA's only if nothing was
// charged since. Of several rules, those that can give back do, and it reports whether all
// could. A result is to be refunded once; the store doesn't remember which were.
func (l *Limiter) Refund(ctx context.Context, key string, res Result) (bool, error) {
	ops := l.ops(Op{Key: key, Kind: Refund})
	switch each := res.Each(); {
	case len(ops) == 1:
		ops[0].Receipt = res.Receipt
	case len(each) != len(ops):
		return false, fmt.Errorf("%w: refund of the results of %d rules, want %d", ErrOp, len(each), len(ops))
	default:
		for i := range ops {
			ops[i].Receipt = each[i].Receipt
		}
	}
	back, err := l.run(ctx, ops)
	return back.Allowed, err
}

// Reset forgets the rules' counters of key.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	_, err := l.do(ctx, Op{Key: key, Kind: Reset})
	return err
}

// do runs op for each rule. Only the first has its interval.
func (l *Limiter) do(ctx context.Context, op Op) (Result, error) {
	if len(l.rules) == 1 {
		op.Rule = l.rules[0]
		return l.one(ctx, op)
	}
	return l.run(ctx, l.ops(op))
}

// ops returns op for each rule.
func (l *Limiter) ops(op Op) []Op {
	ops := make([]Op, len(l.rules))
	for i, r := range l.rules {
		ops[i] = op
		ops[i].Rule = r
		op.Interval = 0
	}
	return ops
}

// run runs one op of each rule.
func (l *Limiter) run(ctx context.Context, ops []Op) (Result, error) {
	if len(ops) == 1 {
		return l.one(ctx, ops[0])
	}
	each, err := l.store.Do(ctx, ops)
	if err != nil {
		return Result{}, err
	}
	sum := mergeResults(l.rules, each)
	sum.more = &details{each: each, denied: DeniedError{Limit: sum.Limit, RetryAfter: sum.RetryAfter}}
	return sum, nil
}
