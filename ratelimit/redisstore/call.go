package redisstore

import (
	"fmt"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

const exact = 1 << 53 // up to here Lua's numbers are integers

// call makes the call of a group of ops, as prelude.lua describes it.
func (s *Store) call(ops []ratelimit.Op) (redispipe.Call, error) {
	c := redispipe.Call{Script: s.script(ops), Replies: len(ops) * len(answer{})}
	if c.Script == nil {
		return c, fmt.Errorf("%w: redisstore has no script for %v", ratelimit.ErrOp, ops[0].Rule)
	}
	if op := &ops[0]; len(ops) == 1 && op.Kind != ratelimit.Refund && op.Ahead == 0 && op.Rule.Block().After == 0 {
		t := s.tell(op.Rule)
		c.Keys = []string{s.key(op.Key, t.counter)}
		c.Args = []any{0, t.head, kinds[op.Kind], op.N, over(op)}
		return c, nil
	}
	g := group{keys: make([]string, 0, len(ops)), args: make([]any, 2, 2+7*len(ops))}
	for i := range ops {
		op := &ops[i]
		t := s.tell(op.Rule)
		block := 0
		if t.block != "" {
			block = g.key(s.key(op.Key, t.block))
		}
		n, at, life := op.N, over(op), int64(0)
		if op.Kind == ratelimit.Refund {
			n, at, life = receipt(op.Receipt)
		}
		g.args = append(g.args, t.head, kinds[op.Kind], g.key(s.key(op.Key, t.counter)), block, n, at, life)
	}
	g.args[0], g.args[1] = len(ops), len(g.keys)
	c.Keys, c.Args = g.keys, g.args
	return c, nil
}

// group is a call while it is made.
type group struct {
	keys []string
	args []any
}

// key returns the number of a key, which it adds if it isn't there yet.
func (g *group) key(name string) int {
	if i := slices.Index(g.keys, name); i >= 0 {
		return i + 1
	}
	g.keys = append(g.keys, name)
	return len(g.keys)
}

// kinds are the kinds' names as arguments.
var kinds = func() (names [ratelimit.Reset + 1]any) {
	for k := ratelimit.Take; k <= ratelimit.Reset; k++ {
		names[k] = k.String()
	}
	return names
}()

// over returns what an op counts over: buckets before the newest, or microseconds; of a
// take, its Ahead.
func over(op *ratelimit.Op) int64 {
	d := op.Interval
	switch {
	case op.Kind == ratelimit.Take:
		return wholeMicros(op.Ahead)
	case op.Kind != ratelimit.Count && op.Kind != ratelimit.Add:
		return 0
	case d == 0:
		d = op.Rule.Per()
	}
	if op.Rule.Interval() > 0 {
		return buckets(d, op.Rule)
	}
	return wholeMicros(d)
}

// receipt returns the fields of a receipt. One with fields that no charge can have
// becomes the zero receipt, which refunds nothing.
func receipt(c ratelimit.Receipt) (n, at, life int64) {
	for _, field := range []int64{c.N, c.At, c.Life} {
		if field < 0 || field > exact {
			return 0, 0, 0
		}
	}
	return c.N, c.At, c.Life
}

// buckets returns how many buckets before the newest an interval touches.
func buckets(d time.Duration, r ratelimit.Rule) int64 {
	return int64((d + r.Interval() - 1) / r.Interval())
}

func wholeMicros(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
