package redisstore

import (
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// answer is the script's result of one op, in its order.
type answer [7]int64

const (
	verdict = iota
	remaining
	retry
	reset
	count
	where // of a denial: what is left of the block
	life
)

// Verdicts on a group that did nothing at all.
const (
	overflow = -2
	foreign  = -3
)

// results reads the script's reply to ops, whose counters are keys, into out.
func results(reply []int64, keys []string, ops []ratelimit.Op, out []ratelimit.Result) error {
	switch reply[verdict] {
	case overflow:
		return ratelimit.ErrOverflow
	case foreign:
		return isForeign(keys...)
	}
	for i := range ops {
		a := answer(reply[i*len(answer{}):])
		out[i] = a.result(&ops[i])
	}
	return nil
}

func isForeign(keys ...string) error {
	return fmt.Errorf("%w: %w: %q", ratelimit.ErrStore, ErrForeign, keys)
}

func (a *answer) result(op *ratelimit.Op) ratelimit.Result {
	res := ratelimit.Result{
		Allowed:    a[verdict] > 0,
		Violated:   a[verdict] < 0,
		Limit:      op.Rule.Limit(),
		Remaining:  a[remaining],
		RetryAfter: time.Duration(a[retry]) * time.Microsecond,
		ResetAfter: time.Duration(a[reset]) * time.Microsecond,
		Count:      a[count],
	}
	if res.Violated {
		res.Blocked = time.Duration(a[where]) * time.Microsecond
	}
	if a[life] != 0 {
		res.Receipt = ratelimit.Receipt{N: op.N, At: a[where], Life: a[life]}
	}
	return res
}
