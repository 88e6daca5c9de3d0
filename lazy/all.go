package lazy

import (
	"context"
	"sync"
)

// Parallel is the number of values that [All] waits for, and so computes, at a time.
const Parallel = 64

// Waiter is a [Value] of any type, as [All] waits for it.
type Waiter interface {
	Wait(ctx context.Context) error
	start(ctx context.Context)
}

// All waits for all of ws, in parallel, at most [Parallel] at a time, and returns the
// first error that occurs. It then leaves the others: values of a scope are computed
// further, and stand-alone ones without another waiter are cancelled. A panic of one is
// a panic of All. Computations start together, so that their calls of a [Batch] usually
// become one.
func All(ctx context.Context, ws ...Waiter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, w := range ws[:min(Parallel, len(ws))] {
		w.start(ctx) // one right after the other, so that their calls of a Batch usually become one
	}
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
				cancel(first) // the others leave, and those that have not begun do not begin
			})
		})
	}
	wg.Wait()
	if panics != nil {
		panics.Raise()
	}
	return first
}
