package layer

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// ReducedError means that the store can't be asked, and that nothing stands in for it. It
// is [ratelimit.ErrStore], too: who lets requests through in spite of that, such as a
// middleware with FailOpen, does so here. It becomes a 503.
type ReducedError struct {
	// RetryAfter is how long until the store is tried again, at the most.
	RetryAfter time.Duration
	// Err is what was wrong with the store.
	Err error
}

// Error says what was wrong with the store.
func (e *ReducedError) Error() string {
	return fmt.Sprintf("%v: retry after %v: %v", ratelimit.ErrStore, e.RetryAfter, e.Err)
}

// Unwrap returns ErrStore and Err.
func (e *ReducedError) Unwrap() []error { return []error{ratelimit.ErrStore, e.Err} }

// RetrySeconds returns RetryAfter in whole seconds, rounded up, at least 1: the value of
// a Retry-After header.
func (e *ReducedError) RetrySeconds() int64 {
	return problem.RetrySeconds(e.RetryAfter)
}

// Problem returns the 503 response that the error stands for.
func (e *ReducedError) Problem() (status int, members map[string]any) {
	return http.StatusServiceUnavailable, map[string]any{
		"type":   "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
		"title":  "Temporary reduced capacity",
		"detail": "The rate limit cannot be checked at the moment. Try again later.",
	}
}

func (f *failover) mode(r ratelimit.Rule) Mode {
	if f.o.ModeFor != nil {
		return min(f.o.ModeFor(r), Local)
	}
	return f.o.Mode
}

// answer answers ops without the store, because of err.
func (f *failover) answer(ctx context.Context, ops []ratelimit.Op, err error) ([]ratelimit.Result, error) {
	reduced := &ReducedError{RetryAfter: f.o.Retry, Err: err}
	for i := range ops {
		switch ops[i].Kind {
		case ratelimit.Take, ratelimit.Peek, ratelimit.Add:
		default:
			return nil, reduced
		}
		if f.mode(ops[i].Rule) == Closed {
			return nil, reduced
		}
	}
	out := make([]ratelimit.Result, len(ops))
	for i, group := range storage.Groups(ops) {
		if err := f.answerGroup(ctx, group, out[i:i+len(group)]); err != nil {
			reduced.Err = err
			return nil, reduced
		}
	}
	return out, nil
}

// answerGroup answers the ops of a group, of which none is Closed.
func (f *failover) answerGroup(ctx context.Context, ops []ratelimit.Op, out []ratelimit.Result) error {
	var counted []ratelimit.Op
	var at []int
	for i := range ops {
		r := &ops[i].Rule
		out[i] = ratelimit.Result{Allowed: true, Source: ratelimit.FromFailover, Limit: r.Limit(), Remaining: r.Burst()}
		if f.mode(*r) == Local {
			counted, at = append(counted, ops[i]), append(at, i)
		}
	}
	if len(counted) == 0 {
		return nil
	}
	results, err := f.local.do(ctx, counted, f.o.Retry)
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
