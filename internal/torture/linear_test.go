package torture_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/faultproxy"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// model describes an object. step returns the states that may follow s if in had this outcome, and no state if in
// cannot have had it. A nil outcome is unknown, which means that in may have been done.
type model[S, In, Out any] struct {
	initial S
	step    func(s S, in In, out *Out) []S
}

// call is one call of an object. It has the input, and a function that makes the call and returns the outcome, or nil
// if the call failed. If undo is not nil, the object may do it by itself after a failure.
type call[In, Out any] struct {
	in   In
	run  func() *Out
	undo *In
}

// checkLinear returns an error if concurrent clients, whose connections break at times, observe something that they
// could not observe if they called the object one after the other. object returns a new object, which is a function
// that draws the next call of a client. checkLinear makes at least atLeast histories.
func checkLinear[S, In, Out any](t *testing.T, atLeast int, m model[S, In, Out], object func(redis.UniversalClient) func(client int) call[In, Out]) error {
	const clients, calls = 6, 12
	c, proxy := faultproxy.NewClient(t, testhost.StartRedis(t))
	checked := porcupine.NondeterministicModel{
		Init: func() []any { return []any{m.initial} },
		Step: func(s, in, out any) (next []any) {
			for _, s := range m.step(s.(S), in.(In), out.(*Out)) {
				next = append(next, s)
			}
			return next
		},
	}
	checked.Equal = func(a, b any) bool { return a == b }
	began, end := time.Now(), time.Now().Add(length(t, time.Second))
	histories, undecided, failed := 0, 0, 0
	for ; histories < atLeast || time.Now().Before(end); histories++ {
		draw := object(c)
		var mu sync.Mutex
		var history []porcupine.Operation
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				for range calls {
					mu.Lock()
					call := draw(i)
					mu.Unlock()
					op := porcupine.Operation{ClientId: i, Input: call.in, Call: time.Since(began).Nanoseconds()}
					out := call.run()
					op.Output, op.Return = out, time.Since(began).Nanoseconds()
					mu.Lock()
					if out == nil {
						op.Return = math.MaxInt64 // the call may take effect at any later time
						failed++
						if call.undo != nil {
							undo := op
							undo.Input = *call.undo
							history = append(history, undo)
						}
					}
					history = append(history, op)
					mu.Unlock()
				}
			})
		}
		if rand.IntN(3) == 0 {
			proxy.ResetAfter(rand.IntN(2000))
		}
		wg.Wait()
		require.NoError(t, proxy.Restore())
		switch porcupine.CheckOperationsTimeout(checked.ToModel(), history, 2*time.Second) {
		case porcupine.Illegal:
			return fmt.Errorf("history %d is not linearizable: %+v", histories, history)
		case porcupine.Unknown:
			undecided++
		}
	}
	tally("histories of a token and a lease", row{times: histories, takes: histories * clients * calls, excused: undecided, other: true})
	t.Logf("%d histories of %d calls, %d of all calls failed, %d histories undecided", histories, clients*calls, failed, undecided)
	require.Less(t, undecided, 1+histories/2)
	return nil
}
