package layer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

var errBroken = errors.New("broken")

// failingStore is a store that fails if the test sets a failure.
type failingStore struct {
	ratelimit.Store
	mu    sync.Mutex
	fail  func(context.Context) error // called by each call of the store; nil means that the store works
	calls int

	ignoreContext bool
}

func (s *failingStore) setFailure(fail func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.calls = fail, 0
}

// takeCalls returns the number of calls since takeCalls or setFailure was last called.
func (s *failingStore) takeCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls
	s.calls = 0
	return n
}

func (s *failingStore) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	s.mu.Lock()
	fail := s.fail
	s.calls++
	s.mu.Unlock()
	if fail != nil {
		if err := fail(ctx); err != nil {
			return nil, err
		}
	}
	if s.ignoreContext {
		ctx = context.WithoutCancel(ctx)
	}
	return s.Store.Do(ctx, ops)
}

func (s *failingStore) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(s.Do).DoOne(ctx, op)
}

// fails and waitsForContext are arguments of setFailure.
func fails(context.Context) error               { return errBroken }
func waitsForContext(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func windowOf(limit int64) ratelimit.Rule {
	return ratelimit.FixedWindow(limit, time.Minute)
}

// failoverTest is a failover layer around a failingStore, in a synctest bubble.
type failoverTest struct {
	*testing.T
	*failover
	store *failingStore
	log   *bytes.Buffer
}

func withFailover(t *testing.T, o FailoverOptions, test func(t *testing.T, f *failoverTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, err := memstore.New(memstore.Options{})
		require.NoError(t, err)
		log := &bytes.Buffer{}
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		store := &failingStore{Store: m}
		f, err := newFailover(store, o)
		require.NoError(t, err)
		test(t, &failoverTest{t, f, store, log})
	})
}

// take takes n units. It also returns the duration of the take.
func (f *failoverTest) take(r ratelimit.Rule, key string, n int64) (ratelimit.Result, time.Duration, error) {
	began := time.Now()
	res, err := f.DoOne(f.Context(), take(r, key, n))
	return res, time.Since(began), err
}

// down makes the store fail until the breaker opens.
func (f *failoverTest) down() {
	f.Helper()
	f.store.setFailure(fails)
	for i := 0; !f.Stats().Down; i++ {
		require.Less(f, i, 1000)
		_, _ = f.DoOne(f.Context(), ratelimit.Op{Rule: gcra(1), Key: "other", Kind: ratelimit.Reset})
	}
	f.store.takeCalls()
}

// back makes the store work until the breaker closes.
func (f *failoverTest) back() {
	f.Helper()
	f.store.setFailure(nil)
	<-time.After(f.o.Retry + 1)
	_, _ = f.DoOne(f.Context(), ratelimit.Op{Rule: gcra(1), Key: "other", Kind: ratelimit.Reset})
	require.False(f, f.Stats().Down)
}

func TestFailoverConformsToStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		m, clock := newMemory(t)
		f, err := newFailover(m, FailoverOptions{Timeout: time.Minute, Mode: Local})
		require.NoError(t, err)
		return f, clock
	}, storetest.Everything)
}

// TestEachModeAnswersInTime checks that each mode answers after the Timeout, even if the store ignores its context.
func TestEachModeAnswersInTime(t *testing.T) {
	for _, mode := range []Mode{Closed, Open, Local} {
		for name, heeding := range map[string]bool{"heeds its context": true, "doesn't": false} {
			t.Run(mode.String()+", "+name, func(t *testing.T) {
				withFailover(t, FailoverOptions{Mode: mode}, func(t *testing.T, f *failoverTest) {
					end := make(chan struct{})
					f.store.setFailure(func(ctx context.Context) error {
						if heeding {
							return waitsForContext(ctx)
						}
						<-end
						return errBroken
					})
					res, took, err := f.take(gcra(5), "k", 1)
					require.Equal(t, 50*time.Millisecond, took)
					switch mode {
					case Closed:
						var reduced *UnavailableError
						require.ErrorAs(t, err, &reduced)
						require.ErrorIs(t, err, ratelimit.ErrStore)
						require.Equal(t, 250*time.Millisecond, reduced.RetryAfter)
					case Open:
						require.NoError(t, err)
						require.Equal(t, ratelimit.Result{Allowed: true, Source: ratelimit.FromFailover, Limit: 5, Remaining: 5}, res)
					case Local:
						require.NoError(t, err)
						require.Equal(t, ratelimit.FromFailover, res.Source)
						require.EqualValues(t, 4, res.Remaining)
						require.Zero(t, res.Receipt)
					}
					close(end)
					synctest.Wait()
					require.Zero(t, f.Stats().Abandoned)
				})
			})
		}
	}
}

func TestBreakerOpensByRatio(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		for range 9 {
			f.take(windowOf(100), "k", 1)
		}
		f.store.setFailure(fails)
		for range 8 { // then 8 of 17 calls have failed
			f.take(windowOf(100), "k", 1)
		}
		require.False(t, f.Stats().Down)
		f.take(windowOf(100), "k", 1) // now 9 of 18 calls have failed
		require.True(t, f.Stats().Down)
		require.Equal(t, 9, f.store.takeCalls())

		for range 50 {
			res, took, err := f.take(windowOf(100), "k", 1)
			require.NoError(t, err)
			require.Equal(t, ratelimit.FromFailover, res.Source)
			require.Zero(t, took)
		}
		require.Zero(t, f.store.takeCalls())
		for range 4 { // the store is tried once in each Retry
			<-time.After(f.o.Retry + 1)
			f.take(windowOf(100), "k", 1)
			f.take(windowOf(100), "k", 1)
			require.Equal(t, 1, f.store.takeCalls())
		}
		f.store.setFailure(nil)
		<-time.After(f.o.Retry + 1)
		res, _, err := f.take(windowOf(100), "k", 1)
		require.NoError(t, err)
		require.Equal(t, ratelimit.FromStore, res.Source)
		require.EqualValues(t, 90, res.Remaining, "what came meanwhile is not charged")
		require.Equal(t, FailoverStats{Outages: 1, Failed: 13, Answered: 67}, f.Stats())

		synctest.Wait()
		require.Equal(t, 2, strings.Count(f.log.String(), "\n"), f.log.String())
		require.Contains(t, f.log.String(), `level=ERROR msg="rate limit store is down: circuit breaker opened" calls=18 failed=9 consecutive_failures=9 error=`)
		require.Contains(t, f.log.String(), `level=INFO msg="rate limit store is back: circuit breaker closed" after=1.250000005s answered=59`)
	})
}

// TestOldFailuresDoNotCount checks that the breaker stays closed if fewer than ten calls fail in each second.
func TestOldFailuresDoNotCount(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		f.store.setFailure(fails)
		for range 50 { // only 7 or 8 calls fail in each second
			f.take(gcra(100), "k", 1)
			<-time.After(130 * time.Millisecond)
		}
		require.False(t, f.Stats().Down)
	})
}

// TestOneCallRetries checks that only one of many concurrent callers tries the store when the breaker is half open.
// All others are answered at once.
func TestOneCallRetries(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		f.down()
		f.store.setFailure(waitsForContext)
		<-time.After(f.o.Retry + 1)
		var mu sync.Mutex
		waited := 0
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, took, err := f.take(gcra(100), "k", 1); err != nil || took > 0 {
					mu.Lock()
					waited++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, waited)
		require.Equal(t, 1, f.store.takeCalls())
	})
}

// TestRetryingCallerLeaves checks that another caller can try the store if the caller that tried it first has left.
func TestRetryingCallerLeaves(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		f.down()
		f.store.setFailure(waitsForContext)
		<-time.After(f.o.Retry + 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := f.DoOne(ctx, take(gcra(100), "k", 1))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		f.store.setFailure(nil)
		res, _, err := f.take(gcra(100), "k", 1)
		require.NoError(t, err)
		require.Equal(t, ratelimit.FromStore, res.Source)
	})
}

// TestNoFailures checks that denials, invalid ops and callers that leave do not count as failures.
func TestNoFailures(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		one := gcra(1)
		for range 20 {
			f.take(one, "k", 1)
		}
		res, _, err := f.take(one, "k", 1)
		require.NoError(t, err)
		require.False(t, res.Allowed)
		_, _, err = f.take(one, "k", 2)
		require.ErrorIs(t, err, ratelimit.ErrTooLarge)
		_, err = f.DoOne(t.Context(), ratelimit.Op{})
		require.ErrorIs(t, err, ratelimit.ErrOp)
		f.store.setFailure(func(context.Context) error { return ratelimit.ErrOverflow })
		_, _, err = f.take(one, "k", 1)
		require.ErrorIs(t, err, ratelimit.ErrOverflow)

		f.store.setFailure(waitsForContext)
		why := errors.New("gone")
		for _, d := range []time.Duration{0, time.Millisecond, 49 * time.Millisecond} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(d, func() { cancel(why) })
			_, err = f.DoOne(ctx, take(one, "k", 1))
			require.ErrorIs(t, err, why)
		}
		synctest.Wait()
		require.Equal(t, FailoverStats{}, f.Stats())
		f.take(one, "k", 1)
		require.EqualValues(t, 1, f.Stats().Failed, "this timeout is a failure")
	})
}

// TestForeignKeyIsNoFailureOfTheStore checks that a key that holds something else does not count as a failure. The
// store has answered, so the breaker must stay closed for all other keys.
func TestForeignKeyIsNoFailureOfTheStore(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		f.store.setFailure(func(context.Context) error {
			return fmt.Errorf("%w: %w", ratelimit.ErrStore, ratelimit.ErrKeyType)
		})
		res, _, err := f.take(gcra(1), "foreign", 1)
		require.NoError(t, err)
		require.Equal(t, ratelimit.FromFailover, res.Source)
		require.Equal(t, FailoverStats{Answered: 1}, f.Stats())
		f.store.setFailure(nil)
		res, _, err = f.take(gcra(1), "k", 1)
		require.NoError(t, err)
		require.Equal(t, ratelimit.FromStore, res.Source)
	})
}

func TestPanicOfTheStoreIsAFailure(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		f.store.setFailure(func(context.Context) error { panic("oh") })
		for range minCalls {
			res, _, err := f.take(gcra(1), "k", 1)
			require.NoError(t, err)
			require.Equal(t, ratelimit.FromFailover, res.Source)
		}
		require.True(t, f.Stats().Down)
		synctest.Wait()
		require.Contains(t, f.log.String(), "failover_test.go", "the stack")
		require.Contains(t, f.log.String(), "the store panicked: oh", "the cause of the outage")
	})
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		f.store.setFailure(func(ctx context.Context) error { <-ctx.Done(); <-time.After(time.Second); panic("late") })
		_, _, err := f.take(gcra(1), "k", 1)
		require.NoError(t, err)
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Contains(t, f.log.String(), "late", "no caller is left")
		require.Zero(t, f.Stats().Abandoned)
	})
}

func TestStoreThatBreaksItsContract(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Closed}, func(t *testing.T, f *failoverTest) {
		f.store.setFailure(func(context.Context) error { runtime.Goexit(); return nil })
		_, _, err := f.take(gcra(1), "k", 1)
		require.ErrorIs(t, err, errGoexit)
	})
}

// TestCallerReusesTheOpsOfAnAbandonedCall checks that the store runs the original ops if the caller changes its slice
// after the call was abandoned.
func TestCallerReusesTheOpsOfAnAbandonedCall(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		end := make(chan struct{})
		f.store.setFailure(func(context.Context) error { <-end; return nil })
		ops := []ratelimit.Op{take(gcra(1), "k", 1), take(gcra(1), "other", 1)}
		results, err := f.Do(t.Context(), ops)
		require.NoError(t, err)
		require.Equal(t, ratelimit.FromFailover, results[0].Source)
		ops[0].Key = "changed"
		f.store.ignoreContext = true
		close(end)
		synctest.Wait()
		for key, left := range map[string]int64{"k": 0, "other": 0, "changed": 1} {
			res, err := f.store.Store.DoOne(t.Context(), ratelimit.Op{Rule: gcra(1), Key: key, N: 1, Kind: ratelimit.Peek})
			require.NoError(t, err)
			require.Equal(t, left, res.Remaining, key)
		}
	})
}

// TestMaxAbandoned checks that no call begins while 256 calls of a store that never answers are in flight.
func TestMaxAbandoned(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		end := make(chan struct{})
		f.store.setFailure(func(context.Context) error { <-end; return nil })
		for range maxAbandoned + 20 {
			<-time.After(300 * time.Millisecond)
			_, took, err := f.take(gcra(1), "k", 1)
			require.NoError(t, err)
			require.LessOrEqual(t, took, 50*time.Millisecond)
		}
		require.EqualValues(t, maxAbandoned, f.Stats().Abandoned)
		require.Equal(t, maxAbandoned, f.store.takeCalls())
		close(end)
		synctest.Wait()
		require.Zero(t, f.Stats().Abandoned)
		res, _, err := f.take(gcra(1), "new", 1)
		require.NoError(t, err)
		require.Equal(t, ratelimit.FromStore, res.Source, "it is called again")
	})
}
