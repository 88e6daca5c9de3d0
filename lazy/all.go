package lazy

import (
	"context"
	"sync"
)

// Parallel is the maximum number of values that [All] waits for, and so computes, at the same time.
const Parallel = 64

// Waiter is a [Value] of any type.
type Waiter interface {
	Wait(ctx context.Context) error
}

// All waits for all of ws in parallel, at most [Parallel] at a time. When an error occurs, All returns it and no
// longer waits for the other values. Values of a scope are still computed. Stand-alone values without another waiter
// are cancelled. If a computation panics, All panics. Computations start together, so that their calls of a [Batch]
// usually become one.
func All(ctx context.Context, ws ...Waiter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu     sync.Mutex
		first  error
		panics *PanicError
		wg     sync.WaitGroup
	)
	slots := make(chan struct{}, Parallel)
	for _, w := range ws {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			Guard("wait", func() error { return w.Wait(ctx) }, func(err error, p *PanicError) {
				if err == nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = err
				}
				if panics == nil {
					panics = p
				}
				cancel(first) // waits in progress end, and the remaining values do not start
			})
		})
	}
	wg.Wait()
	if panics != nil {
		panics.Raise()
	}
	return first
}
