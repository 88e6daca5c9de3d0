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
	answers, _ := reply.([]any)
	if len(answers) != len(ops) {
		return fmt.Errorf("%w: the script answered %T of %d, want %d", ratelimit.ErrStore, reply, len(answers), len(ops))
	}
	for i := range answers {
		a, err := readAnswer(answers[i])
		if err != nil {
			return err
		}
		out[i] = a.result(&ops[i])
	}
	return nil
}

func readAnswer(reply any) (a answer, err error) {
	fields, _ := reply.([]any)
	if len(fields) != len(a) {
		return a, fmt.Errorf("%w: the script answered %v for an op", ratelimit.ErrStore, reply)
	}
	for i := range fields {
		n, ok := fields[i].(int64)
		if !ok {
			return a, fmt.Errorf("%w: the script answered %v for an op", ratelimit.ErrStore, reply)
		}
		a[i] = n
	}
	return a, nil
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
