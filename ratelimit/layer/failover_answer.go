package layer

import (
	"context"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

func (f *failover) mode(r ratelimit.Rule) Mode {
	if f.o.ModeFor != nil {
		return min(f.o.ModeFor(r), Local)
	}
	return f.o.Mode
}

// answer answers ops without the store, which failed with err.
func (f *failover) answer(ctx context.Context, ops []ratelimit.Op, err error) ([]ratelimit.Result, error) {
	unavailable := &UnavailableError{RetryAfter: f.o.Retry, Err: err}
	for i := range ops {
		switch ops[i].Kind {
		case ratelimit.Take, ratelimit.Peek, ratelimit.Add:
		default:
			return nil, unavailable
		}
		if f.mode(ops[i].Rule) == Closed {
			return nil, unavailable
		}
	}
	out := make([]ratelimit.Result, len(ops))
	for i, group := range storage.Groups(ops) {
		if err := f.answerGroup(ctx, group, out[i:i+len(group)]); err != nil {
			unavailable.Err = err
			return nil, unavailable
		}
	}
	return out, nil
}

// answerGroup answers the ops of a group, each of which is Open or Local.
func (f *failover) answerGroup(ctx context.Context, ops []ratelimit.Op, out []ratelimit.Result) error {
	var counted []ratelimit.Op
	var at []int
	for i := range ops {
		r := ops[i].Rule
		out[i] = ratelimit.Result{Allowed: true, Source: ratelimit.FromFailover, Limit: r.Limit(), Remaining: r.Burst()}
		if f.mode(r) == Local {
			counted, at = append(counted, ops[i]), append(at, i)
		}
	}
	if len(counted) == 0 {
		return nil
	}
	results, err := f.local.do(ctx, counted, f.o.Retry, f.now())
	if err != nil {
		return err
	}
	denied := false
	for j, i := range at {
		limit := out[i].Limit
		out[i] = results[j]
		out[i].Source, out[i].Limit, out[i].Receipt = ratelimit.FromFailover, limit, ratelimit.Receipt{}
		denied = denied || ops[i].Kind == ratelimit.Take && !results[j].Allowed
	}
	for i := range out {
		if denied && ops[i].Kind != ratelimit.Peek {
			out[i].Allowed = false
		}
	}
	return nil
}
