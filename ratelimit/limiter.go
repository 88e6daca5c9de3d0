package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
	"github.com/lazyreq/lazyreq/ratelimit/internal/single"
)

// Limiter asks one store about one rule. It is immutable and safe for concurrent use.
// Its methods cost one call of the store.
//
// A key is the subject in the store, as it is: limiters that share a store and must not
// share counters begin their keys with what they limit, as in "login:192.0.2.1".
type Limiter struct {
	one   func(context.Context, Op) (Result, error)
	rule  Rule
	taker taker
}

// taker is a store whose takes are so fast that copies of the rule would show.
type taker interface {
	Take(ctx context.Context, r *Rule, key string, n int64) (Result, error)
}

// oneTaker takes by another store's function for one op.
type oneTaker func(context.Context, Op) (Result, error)

func (one oneTaker) Take(ctx context.Context, r *Rule, key string, n int64) (Result, error) {
	return one(ctx, Op{Rule: *r, Key: key, N: n, Kind: Take})
}

// NewLimiter returns a limiter, or an error if there is no store or no rule.
func NewLimiter(store Store, rule Rule) (*Limiter, error) {
	switch {
	case store == nil:
		return nil, errors.New("ratelimit: NewLimiter: store is nil")
	case rule == Rule{}:
		return nil, errors.New("ratelimit: NewLimiter: zero Rule")
	}
	l := &Limiter{one: single.Func[Op, Result](store, ErrStore), rule: rule}
	if t, ok := store.(taker); ok {
		l.taker = t
	} else {
		l.taker = oneTaker(l.one)
	}
	return l, nil
}

// Rule returns the limiter's rule.
func (l *Limiter) Rule() Rule { return l.rule }

// Take charges n units, at least 1, if the limit allows them, otherwise nothing. (A take of 0
// would pass whatever the limit: a cost that is 0 by mistake would turn it off.)
func (l *Limiter) Take(ctx context.Context, key string, n int64) (Result, error) {
	return l.taker.Take(ctx, &l.rule, key, n)
}

// Peek says what Take would, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, key string, n int64) (Result, error) {
	return l.one(ctx, Op{Rule: l.rule, Key: key, N: n, Kind: Peek})
}

// Add charges n units whatever the limit, and says what is left then. An n of 0 charges
// nothing.
func (l *Limiter) Add(ctx context.Context, key string, n int64) (Result, error) {
	return l.one(ctx, Op{Rule: l.rule, Key: key, N: n, Kind: Add})
}

// Count returns the units of the last interval, which is at most the rule's span; zero
// means its Per. Longer is [ErrInterval]; of a GCRA it is [ErrNoCount].
func (l *Limiter) Count(ctx context.Context, key string, interval time.Duration) (int64, error) {
	res, err := l.one(ctx, Op{Rule: l.rule, Key: key, Kind: Count, Interval: interval})
	return res.Count, err
}

// AddCount is Add and Count in one call; the count includes the n units.
func (l *Limiter) AddCount(ctx context.Context, key string, n int64, interval time.Duration) (int64, error) {
	if l.rule.layout.Algorithm == layout.GCRA {
		return 0, fmt.Errorf("%w: %v", ErrNoCount, l.rule)
	}
	res, err := l.one(ctx, Op{Rule: l.rule, Key: key, N: n, Kind: Add, Interval: interval})
	return res.Count, err
}

// Refund gives back what res charged to key, and tells whether it could: not if it was a
// denial, or a charge of another key, or is older than the span, or the counter was reset or forgotten since; a fixed
// window's only within the same window, a GCRA's only if nothing was charged since. A
// result is to be refunded once; the store doesn't remember which were.
func (l *Limiter) Refund(ctx context.Context, key string, res Result) (bool, error) {
	back, err := l.one(ctx, Op{Rule: l.rule, Key: key, Kind: Refund, Receipt: res.Receipt})
	return back.Allowed, err
}

// Reset forgets the rule's counter of key.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	_, err := l.one(ctx, Op{Rule: l.rule, Key: key, Kind: Reset})
	return err
}
