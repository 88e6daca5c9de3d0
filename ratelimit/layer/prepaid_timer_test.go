package layer

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestTimerOfAForgottenKey checks that a second firing of a key's timer, after the key was forgotten, does not affect the
// key's new state.
func TestTimerOfAForgottenKey(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		op := take(q.rule, "k", 1)
		q.take(1)
		forgotten := q.key()
		<-time.After(4 * time.Second)
		synctest.Wait()
		require.Nil(q, q.key())

		q.take(1)
		k := q.key()
		require.NotNil(q, k)
		q.expire(counterOf(&op), forgotten)
		require.Same(q, k, q.key())
	})
}

// TestTimeIsReadUnderTheLock checks that the layer uses the time after it has waited for the lock. An older time could be
// before the time of the last update.
func TestTimeIsReadUnderTheLock(t *testing.T) {
	op := take(leasable, "k", 1)
	for name, test := range map[string]struct {
		call  func(q prepaidTest, k *keyState)
		check func(q prepaidTest, k *keyState)
	}{
		"spend": {
			func(q prepaidTest, _ *keyState) { q.spendOrRefill(&op) },
			func(q prepaidTest, k *keyState) { require.Empty(q, k.allotments, "they have ended") },
		},
		"observe": {
			func(q prepaidTest, _ *keyState) { q.observeTake(&op, &ratelimit.Result{Allowed: true}) },
			func(q prepaidTest, k *keyState) { require.GreaterOrEqual(q, k.demand.at, time.Hour) },
		},
		"expire": {
			func(q prepaidTest, k *keyState) { q.expire(counterOf(&op), k) },
			func(q prepaidTest, k *keyState) { require.Empty(q, k.allotments, "they have ended") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
				q.warm()
				k, done := q.key(), make(chan struct{})
				q.mu.Lock()
				go func() {
					defer close(done)
					test.call(q, k)
				}()
				for range 1000 {
					runtime.Gosched() // so that the call waits for the lock
				}
				q.start = q.start.Add(-time.Hour) // an hour passes
				q.mu.Unlock()
				<-done
				q.mu.Lock()
				defer q.mu.Unlock()
				test.check(q, k)
			})
		})
	}
}
