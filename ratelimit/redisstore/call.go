package redisstore

import (
	_ "embed" // the scripts
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

var (
	//go:embed prelude.lua
	preludeLua string
	//go:embed single.lua
	singleLua string
	//go:embed buckets.lua
	bucketsLua string
	//go:embed driver.lua
	driverLua string

	// The driver comes last: it runs the algorithm before it. The shortcut comes before
	// both, whose functions cost it nothing then.
	script = redispipe.NewScript(preludeLua + "\n" + singleLua + "\n" + bucketsLua + "\n" + driverLua)
)

const exact = 1 << 53 // up to here Lua's numbers are integers

// call is a group of ops as driver.lua takes it.
type call struct {
	keys []string
	args []any
}

// Where driver.lua has what is in args.
const (
	counterArgs = 4
	opArgs      = 7
	ttlArg      = 2 // of a counter's
)

func (s *Store) call(ops []ratelimit.Op) (call, error) {
	c := call{
		keys: make([]string, 0, len(ops)),
		args: make([]any, 1, 1+len(ops)*(counterArgs+opArgs)),
	}
	c.args[0] = s.now()
	index := make([]int, len(ops))
	for i := range ops {
		if a := ops[i].Rule.Algorithm(); a != "buckets" {
			return call{}, fmt.Errorf("%w: redisstore has no script for %s", ratelimit.ErrOp, a)
		}
		index[i] = c.counter(s.key(ops[i].Key, ops[i].Rule), ops[i].Rule)
	}
	for i := range ops {
		c.op(&ops[i], index[i])
	}
	return c, nil
}

// now is 0 for the server's time.
func (s *Store) now() int64 {
	if s.clock == nil {
		return 0
	}
	return s.clock().UnixMicro()
}

// counter returns the number of the counter's key, which it adds if it isn't there yet.
// Rules that share the counter can differ in expiry; the longest counts.
func (c *call) counter(key string, r ratelimit.Rule) int {
	ttl := milliseconds(max(r.Expiry(), r.Span()+r.Interval()))
	if i := slices.Index(c.keys, key); i >= 0 {
		if at := 1 + i*counterArgs + ttlArg; c.args[at].(int64) < ttl {
			c.args[at] = ttl
		}
		return i + 1
	}
	c.keys = append(c.keys, key)
	c.args = append(c.args,
		r.Interval().Microseconds(),
		int64(r.Span()/r.Interval())+1,
		ttl,
		1+rand.Int64N(exact/2), // a life that no counter had, whoever made it
	)
	return len(c.keys)
}

func (c *call) op(op *ratelimit.Op, counter int) {
	r, n := op.Rule, op.N
	var over, life int64
	switch op.Kind {
	case ratelimit.Count, ratelimit.Add:
		over = buckets(op.Interval, r)
		if op.Interval == 0 {
			over = buckets(r.Per(), r)
		}
	case ratelimit.Refund:
		n, over, life = receipt(op.Receipt)
	}
	c.args = append(c.args, op.Kind.String(), counter, n, r.Limit(), buckets(r.Per(), r), over, life)
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
