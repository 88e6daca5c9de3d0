package queue

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// queueTest is a queue whose store is a spy. It runs in a synctest bubble, so all times are exact.
type queueTest struct {
	*Queue
	spy   *storespy.Spy
	began time.Time

	mu       sync.Mutex
	finished []outcome
}

// outcome describes the end of a wait.
type outcome struct {
	id  int
	at  time.Duration
	err error
}

func withQueue(t *testing.T, rule ratelimit.Rule, o Options, test func(t *testing.T, w *queueTest)) {
	synctest.Test(t, func(t *testing.T) {
		memory, err := memstore.New(memstore.Options{Clock: time.Now})
		require.NoError(t, err)
		w := &queueTest{spy: &storespy.Spy{Store: memory}, began: time.Now()}
		w.Queue, err = New(w.spy, rule, o)
		require.NoError(t, err)
		test(t, w)
		synctest.Wait()
		require.Empty(t, w.lines, "no line is kept")
	})
}

// start calls Wait on a new goroutine, and returns when the caller is in line or has finished.
func (w *queueTest) start(ctx context.Context, id int, n int64) {
	go func() {
		_, err := w.Wait(ctx, "k", n)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.finished = append(w.finished, outcome{id, time.Since(w.began), err})
	}()
	synctest.Wait()
}

// advance waits for d, and returns the outcomes of the waits that have ended since the last call of advance.
func (w *queueTest) advance(d time.Duration) []outcome {
	<-time.After(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	done := w.finished
	w.finished = nil
	return done
}

func window(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.FixedWindow(limit, per)
}

func paced(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.GCRA(limit, per).WithBurst(1)
}
