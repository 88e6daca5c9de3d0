package redisstore

import (
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// answer is driver.lua's result of one op, in its order.
type answer [7]int64

const (
	verdict = iota
	remaining
	retry
	reset
	count
	where
	life
)

// results reads the script's reply to ops into out.
func results(reply any, ops []ratelimit.Op, out []ratelimit.Result) error {
	fields, _ := reply.([]any)
	if len(fields) != len(ops)*len(answer{}) {
		return fmt.Errorf("%w: the script answered %v to %d ops", ratelimit.ErrStore, reply, len(ops))
	}
	for i := range ops {
		var a answer
		for j := range a {
			n, ok := fields[i*len(a)+j].(int64)
			if !ok {
				return fmt.Errorf("%w: the script answered %v to %d ops", ratelimit.ErrStore, reply, len(ops))
			}
			a[j] = n
		}
		out[i] = a.result(&ops[i])
	}
	return nil
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
	if a[life] != 0 {
		res.Receipt = ratelimit.Receipt{N: op.N, At: a[where], Life: a[life]}
	}
	return res
}
