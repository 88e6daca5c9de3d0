package redisstore

import (
	_ "embed" // the scripts
	"fmt"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

var (
	//go:embed prelude.lua
	preludeLua string
	//go:embed buckets.lua
	bucketsLua string
	//go:embed driver.lua
	driverLua string

	script = redispipe.NewIntScript(preludeLua + "\n" + bucketsLua + "\n" + driverLua)
)

const exact = 1 << 53 // up to here Lua's numbers are integers

// call makes the call of a group of ops, as prelude.lua describes it.
func (s *Store) call(ops []ratelimit.Op) (redispipe.Call, error) {
	for i := range ops {
		if a := ops[i].Rule.Algorithm(); a != "buckets" {
			return redispipe.Call{}, fmt.Errorf("%w: redisstore has no script for %s", ratelimit.ErrOp, a)
		}
	}
	c := redispipe.Call{Script: script, Replies: len(ops) * len(answer{})}
	if len(ops) == 1 && ops[0].Kind != ratelimit.Refund {
		op := &ops[0]
		t := s.tell(op.Rule)
		c.Keys = []string{s.key(op.Key, t.counter)}
		c.Args = []any{0, t.head, kinds[op.Kind], op.N, over(op)}
		return c, nil
	}
	keys, args := make([]string, 0, len(ops)), make([]any, 2, 2+6*len(ops))
	for i := range ops {
		op := &ops[i]
		t := s.tell(op.Rule)
		key := s.key(op.Key, t.counter)
		number := 1 + slices.Index(keys, key)
		if number == 0 {
			keys = append(keys, key)
			number = len(keys)
		}
		n, at, life := op.N, over(op), int64(0)
		if op.Kind == ratelimit.Refund {
			n, at, life = receipt(op.Receipt)
		}
		args = append(args, t.head, kinds[op.Kind], number, n, at, life)
	}
	args[0], args[1] = len(ops), len(keys)
	c.Keys, c.Args = keys, args
	return c, nil
}

// kinds are the kinds' names as arguments.
var kinds = func() (names [ratelimit.Reset + 1]any) {
	for k := ratelimit.Take; k <= ratelimit.Reset; k++ {
		names[k] = k.String()
	}
	return names
}()

// over returns the buckets before the newest that an op counts.
func over(op *ratelimit.Op) int64 {
	switch {
	case op.Kind != ratelimit.Count && op.Kind != ratelimit.Add:
		return 0
	case op.Interval == 0:
		return buckets(op.Rule.Per(), op.Rule)
	}
	return buckets(op.Interval, op.Rule)
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

func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
