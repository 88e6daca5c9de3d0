package layer

import (
	"context"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// subset holds those ops of a list that the store has to run.
type subset struct {
	out      []ratelimit.Result // the results of the whole list
	ops      []ratelimit.Op
	at       []int // the index of each op in the whole list
	newGroup bool  // whether the next op begins a group
}

func (s *subset) add(op ratelimit.Op, at int) {
	op.NewGroup, s.newGroup = s.newGroup, false
	s.ops, s.at = append(s.ops, op), append(s.at, at)
}

// do runs the ops in one call of the store and copies their results to out.
func (s *subset) do(ctx context.Context, store ratelimit.Store) error {
	if len(s.ops) == 0 {
		return nil
	}
	out, err := store.Do(ctx, s.ops)
	if err != nil {
		return err
	}
	for i, at := range s.at {
		s.out[at] = out[i]
	}
	return nil
}

// check returns an error if ctx has ended or ops are invalid.
func check(ctx context.Context, ops []ratelimit.Op) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return storage.Validate(ops)
}
