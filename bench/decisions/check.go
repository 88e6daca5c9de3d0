package decisions

import (
	"context"
	"fmt"
	"sync"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// keyNames returns the names of a round's keys.
func (l load) keyNames(prefix string, round int) []string {
	names := make([]string, l.size)
	for i := range names {
		names[i] = fmt.Sprintf("%s:%d:%05d", prefix, round, i)
	}
	return names
}

// beyond is how much more of a narrow quota is asked for than there is.
const beyond = 2

// checkQuota has the callers ask for more of a few keys than their quota, all at once. What
// passes must be the quota.
func (in *instance) checkQuota(ctx context.Context) error {
	if in.loose {
		return nil
	}
	names := load{size: min(in.load.size, 4)}.keyNames("narrow", in.rounds)
	admitted, failed := make([]int, len(names)), make([]error, len(names))
	calls := make(chan int)
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range in.load.callers {
		callers.Go(func() {
			for i := range calls {
				d, err := in.narrow(ctx, names[i], 1)
				mu.Lock()
				if d.Allowed {
					admitted[i]++
				}
				if err != nil {
					failed[i] = err
				}
				mu.Unlock()
			}
		})
	}
	for n := range beyond * narrow.Limit * len(names) {
		calls <- n % len(names)
	}
	close(calls)
	callers.Wait()
	for i, n := range admitted {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case failed[i] != nil:
			return fmt.Errorf("%w: at the limit: %w", harness.ErrWrong, failed[i])
		case n != narrow.Limit:
			return fmt.Errorf("%w: admitted %d, allowed were %d", harness.ErrWrong, n, narrow.Limit)
		}
	}
	return nil
}
