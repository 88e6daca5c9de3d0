package layer

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// ErrQueueFull means that too many takes of one key wait for the store. It wraps
// [ratelimit.ErrStore]: the store can't be asked in time, whatever it would say. Nothing
// was charged.
var ErrQueueFull = fmt.Errorf("%w: too many takes of the key wait for it", ratelimit.ErrStore)

// CoalesceOptions configure a [Coalesce]. The zero value is usable.
type CoalesceOptions struct {
	// MaxQueue is how many takes of one rule and key may wait while a call is under way;
	// those beyond are [ErrQueueFull]. Default: 16384.
	MaxQueue int
}

// Coalesce makes one call of the takes of one rule and key that come while another call is
// under way. A key that is in demand so costs one call for each of the store's answers,
// however many ask for it.
//
// A take that finds no call of its rule and key under way goes at once, as it is. Those
// that come meanwhile queue; when the answer is there, one call has all of them. Each is
// decided by itself, in the order in which they came, and gets what it would have got
// alone at the moment of the call. There is no timer, and nobody waits for company.
//
// While it queues, a take's context counts: when it ends, the take returns its cause at
// once. It isn't charged if the call with it had not begun; else it may be, as with a call
// of its own. The call itself belongs to none of them: its context has no values and no
// end. It bounds itself, as that of package redisstore does; a store that never answers
// holds up its key, until the queue is full and every take is ErrQueueFull.
//
// An error of the call is that of each take in it, even if only one of them, such as one
// that is [ratelimit.ErrOverflow], has caused it; those before that one may be charged. A
// panic is one of each of them, as a [*lazy.PanicError]. The next call goes on.
//
// Only takes that are alone are made one. All else, and groups of several ops, goes to the
// store as it comes. A caller that has the answer to one op before it asks for the next
// has them done in that order.
//
// A Coalesce is safe for concurrent use, has a goroutine only while somebody queues, and
// needs no closing. It takes 250 KB at most, and nothing for a key that nobody asks for. A
// take that doesn't queue costs some 100 ns and no allocation more than the store's.
type Coalesce struct {
	inner    ratelimit.Store
	one      func(context.Context, ratelimit.Op) (ratelimit.Result, error)
	many     ratelimit.ManyTaker // nil if inner is none
	maxQueue int
	seed     maphash.Seed
	lanes    *[laneLists]laneList
}

// NewCoalesce returns a layer around inner. An error names the option that is out of range,
// or wraps [ErrOrder].
func NewCoalesce(inner ratelimit.Store, o CoalesceOptions) (*Coalesce, error) {
	if err := fits(coalescePlace, inner); err != nil {
		return nil, err
	}
	if o.MaxQueue < 0 {
		return nil, fmt.Errorf("layer: CoalesceOptions.MaxQueue is %d, want at least 0", o.MaxQueue)
	}
	if o.MaxQueue == 0 {
		o.MaxQueue = 16384
	}
	many, _ := inner.(ratelimit.ManyTaker)
	return &Coalesce{
		inner: inner, one: ratelimit.DoOne(inner), many: many, maxQueue: o.MaxQueue,
		seed: maphash.MakeSeed(), lanes: new([laneLists]laneList),
	}, nil
}

func (c *Coalesce) place() place { return coalescePlace }

// Do runs ops as [ratelimit.Store] says.
func (c *Coalesce) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if len(ops) != 1 {
		return c.inner.Do(ctx, ops)
	}
	res, err := c.DoOne(ctx, ops[0])
	if err != nil {
		return nil, err
	}
	return []ratelimit.Result{res}, nil
}

// DoOne is Do with a list of one.
func (c *Coalesce) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	op.Apart = false
	if op != (ratelimit.Op{Rule: op.Rule, Key: op.Key, N: op.N, Kind: ratelimit.Take}) {
		return c.one(ctx, op)
	}
	if ctx.Err() != nil {
		return ratelimit.Result{}, context.Cause(ctx)
	}
	// What is wrong with one take must not fail those that it would share a call with.
	if err := ratelimit.ValidateMany(&op, 1); err != nil {
		return ratelimit.Result{}, err
	}
	scope := lazy.ScopeOf(ctx)
	l, turn := c.enter(&op, scope != nil)
	switch {
	case turn.flush != nil:
		return c.wait(ctx, turn)
	case turn.full:
		return ratelimit.Result{}, ErrQueueFull
	case turn.passes:
		return c.pass(ctx, l, &op)
	case scope != nil || lazy.Current(ctx) != nil:
		return c.goApart(ctx, l, &op)
	default:
		return c.goAlone(ctx, l, &op)
	}
}
