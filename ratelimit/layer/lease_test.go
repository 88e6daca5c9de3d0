package layer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

var leasable = ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 1000, Per: time.Minute}))

// lender is a Lease in a bubble, over a store in memory whose calls are noted.
type lender struct {
	*testing.T
	*Lease
	spy  *spy
	rule ratelimit.Rule
}

func lending(t *testing.T, r ratelimit.Rule, o LeaseOptions, test func(q lender)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, err := ratelimit.NewMemory(ratelimit.MemoryOptions{})
		require.NoError(t, err)
		s := &spy{Store: m}
		l, err := NewLease(s, o)
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		test(lender{t, l, s, r})
	})
}

func (q lender) ask(kind ratelimit.Kind, n int64) ratelimit.Result {
	q.Helper()
	res, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", N: n, Kind: kind})
	require.NoError(q, err)
	return res
}

func (q lender) take(n int64) ratelimit.Result {
	q.Helper()
	return q.ask(ratelimit.Take, n)
}

// charged is what the store has.
func (q lender) charged() int64 {
	out, err := q.spy.Store.Do(q.Context(), []ratelimit.Op{{Rule: q.rule, Key: "k", Kind: ratelimit.Count}})
	require.NoError(q, err)
	return out[0].Count
}

// warm asks until there is a lease, and returns how many units were taken.
func (q lender) warm() (n int64) {
	q.Helper()
	for q.own() == 0 {
		n++
		require.True(q, q.take(1).Allowed)
		require.Less(q, n, int64(100))
	}
	synctest.Wait()
	return n
}

// own is what is leased.
func (q lender) own() int64 {
	if h := q.holding(); h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.own(q.now())
	}
	return 0
}

func (q lender) holding() *holding {
	r := q.rules.of(&q.rule, &q.o)
	return q.table.find(r.hash(q.seed, "k"), r, "k")
}

func (q lender) calls() int {
	q.spy.mu.Lock()
	defer q.spy.mu.Unlock()
	return len(q.spy.calls)
}

func TestALeaseServesTakesWithoutTheStore(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		for taken := int64(1); taken <= 500; taken++ {
			res := q.take(1)
			require.True(q, res.Allowed)
			require.Equal(q, 1000-taken, res.Remaining, "this process is the only one")
			require.EqualValues(q, 1000, res.Limit)
			require.Zero(q, res.RetryAfter)
			synctest.Wait()
			require.Equal(q, taken+q.own(), q.charged())
			require.LessOrEqual(q, q.own(), int64(200), "two leases of a tenth")
		}
		require.Less(q, q.calls(), 30)
		require.Equal(q, ratelimit.FromLease, q.take(1).Source)
	})
}

func TestAKeyThatIsAskedRarelyHasNoLease(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		for range 100 {
			res := q.take(1)
			require.Equal(q, ratelimit.FromStore, res.Source)
			require.Zero(q, q.own())
			<-time.After(400 * time.Millisecond)
		}
		require.Equal(q, 100, q.calls())
		for _, call := range q.spy.calls {
			require.Zero(q, call.ops[0].Ahead)
		}
	})
}

func TestWhatIsNotSpentGoesBack(t *testing.T) {
	for name, end := range map[string]func(q lender){
		"at the end of its life": func(lender) { <-time.After(time.Second) },
		"on Close":               func(q lender) { require.NoError(q, q.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			lending(t, leasable, LeaseOptions{}, func(q lender) {
				n := q.warm()
				require.Greater(q, q.charged(), n)
				end(q)
				synctest.Wait()
				require.Equal(q, n, q.charged())
				require.Empty(q, q.ends.leases)
			})
		})
	}
}

func TestALeaseEndsWithItsBucketOrWindow(t *testing.T) {
	for _, r := range []ratelimit.Rule{
		ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 1000, Per: 20 * time.Second})),
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1000, Per: 20 * time.Second, Interval: 20 * time.Second, Span: time.Minute})),
	} {
		t.Run(r.Algorithm(), func(t *testing.T) {
			lending(t, r, LeaseOptions{}, func(q lender) {
				if r.Algorithm() == "window" {
					q.take(1) // begins one
				}
				<-time.After(20*time.Second - 100*time.Millisecond)
				q.warm()
				end := q.holding().cur.Load().end - q.now()
				require.LessOrEqual(q, end, 100*time.Millisecond-time.Microsecond)
				require.Greater(q, end, 99*time.Millisecond, "a little earlier, for clocks that are not alike")
				<-time.After(end)
				require.Zero(q, q.own())
			})
		})
	}
}

func TestRulesWithoutLeases(t *testing.T) {
	for name, r := range map[string]ratelimit.Rule{
		"with a Block": ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{
			Limit: 1000, Per: time.Minute, Block: ratelimit.Block{After: 1, For: time.Minute}})),
		"of few units":      ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 19, Per: time.Minute})),
		"too short":         ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 1000, Per: 19 * time.Millisecond})),
		"of a short refill": ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 100_000, Per: time.Minute, Burst: 30})),
	} {
		t.Run(name, func(t *testing.T) {
			lending(t, r, LeaseOptions{}, func(q lender) {
				for range r.Burst() {
					require.Equal(q, ratelimit.FromStore, q.take(1).Source)
				}
				require.EqualValues(q, r.Burst(), q.calls())
			})
		})
	}
}

func TestADenialIsTheStores(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		for range 1000 {
			require.True(q, q.take(1).Allowed)
		}
		synctest.Wait()
		res := q.take(1)
		require.False(q, res.Allowed)
		require.True(q, res.Violated)
		require.Equal(q, ratelimit.FromStore, res.Source)
		require.Zero(q, res.Remaining)
		require.InDelta(q, time.Minute, res.RetryAfter, float64(time.Second))
		<-time.After(res.RetryAfter)
		require.True(q, q.take(1).Allowed)
	})
}

// What this process holds must not make it deny what the limit allows.
func TestALeaseIsNoReasonToDeny(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		n := q.warm()
		res := q.take(1000 - n)
		require.True(q, res.Allowed)
		require.Zero(q, res.Remaining)
		require.Zero(q, q.own())
		require.EqualValues(q, 1000, q.charged())
		require.False(q, q.take(1).Allowed)
	})
}

func TestPeekAndCountSeeWhatIsLeasedAsNotUsed(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		n := q.warm()
		require.Greater(q, q.own(), int64(0))
		require.Equal(q, n, q.ask(ratelimit.Count, 0).Count)
		calls := q.calls()
		res := q.ask(ratelimit.Peek, 1)
		require.True(q, res.Allowed)
		require.Equal(q, ratelimit.FromLease, res.Source)
		require.Equal(q, 1000-n, res.Remaining)
		require.Equal(q, ratelimit.Receipt{}, res.Receipt)
		require.Equal(q, calls, q.calls())

		res = q.ask(ratelimit.Peek, 1000-n)
		require.True(q, res.Allowed)
		require.Equal(q, 1000-n, res.Remaining)
		res = q.ask(ratelimit.Peek, 1001-n)
		require.False(q, res.Allowed)
		require.True(q, res.Violated)
		require.Equal(q, 1000-n, res.Remaining)

		res = q.ask(ratelimit.Add, 2000)
		require.Equal(q, 2000+n, res.Count)
		require.Equal(q, q.own(), res.Remaining, "which can still be spent")
	})
}

func TestARefundGoesToTheLease(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		n := q.warm()
		own, calls := q.own(), q.calls()
		res := q.take(1)
		require.Equal(q, own-1, q.own())
		refund := func(c ratelimit.Receipt) bool {
			back, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", Kind: ratelimit.Refund, Receipt: c})
			require.NoError(q, err)
			return back.Allowed
		}
		require.True(q, refund(res.Receipt))
		require.Equal(q, own, q.own())
		require.Equal(q, calls, q.calls())

		res = q.take(1)
		many := res.Receipt
		many.N = own + n + 1
		require.False(q, refund(many), "more than was taken")
		<-time.After(2 * time.Second)
		require.Equal(q, n+1, q.charged())
		require.True(q, refund(res.Receipt), "by the store")
		require.Equal(q, n, q.charged())
	})
}

func TestAResetEndsTheLeasesOfTheCounter(t *testing.T) {
	other := ratelimit.Must(leasable.WithLimit(10))
	for name, reset := range map[string]func(q lender) error{
		"alone": func(q lender) error {
			_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: leasable, Key: "k", Kind: ratelimit.Reset})
			return err
		},
		"by another limit": func(q lender) error {
			_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: other, Key: "k", Kind: ratelimit.Reset})
			return err
		},
		"in a group": func(q lender) error {
			op := ratelimit.Op{Rule: leasable, Key: "k", Kind: ratelimit.Reset}
			_, err := q.Do(q.Context(), []ratelimit.Op{op, {Rule: leasable, Key: "k", Kind: ratelimit.Count}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			lending(t, leasable, LeaseOptions{}, func(q lender) {
				q.warm()
				require.NoError(q, reset(q))
				require.Zero(q, q.own())
				require.Zero(q, q.charged())
				n := q.warm()
				require.Equal(q, n+q.own(), q.charged(), "there are new leases")
			})
		})
	}
}

// A lease that was charged before a reset, and comes after it, is not spent.
func TestAResetEndsALeaseOnItsWay(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		n := q.warm()
		q.spy.hold = make(chan struct{})
		for q.holding().refill == nil {
			q.take(1)
			n++
		}
		synctest.Wait() // it has asked
		go func() { q.spy.hold <- struct{}{}; q.spy.hold <- struct{}{} }()
		q.ask(ratelimit.Reset, 0)
		synctest.Wait()
		q.spy.hold = nil
		require.Zero(q, q.own())
	})
}

func TestManyTakeFromOneLease(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		var all sync.WaitGroup
		var mu sync.Mutex
		var allowed int64
		for range 64 {
			all.Go(func() {
				for range 25 {
					n := int64(1)
					if res := q.take(n); res.Allowed {
						mu.Lock()
						allowed += n
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		require.EqualValues(q, 1000, allowed)
		require.EqualValues(q, 1000, q.charged())
	})
}

// Whoever leaves while a lease is taken is not charged: its units are the lease's.
func TestACallerThatLeavesIsNotCharged(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		for range 10 {
			require.True(q, q.take(1).Allowed)
		}
		require.NoError(q, drain(q))
		before := q.charged() - q.own()
		q.spy.hold = make(chan struct{})
		why := errors.New("gone")
		ctx, cancel := context.WithCancelCause(q.Context())
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := q.DoOne(ctx, ratelimit.Op{Rule: q.rule, Key: "k", N: 3, Kind: ratelimit.Take})
				errs <- err
			}()
		}
		synctest.Wait()
		require.NotNil(q, q.holding().refill)
		cancel(why)
		require.ErrorIs(q, <-errs, why)
		require.ErrorIs(q, <-errs, why)
		close(q.spy.hold)
		synctest.Wait()
		require.Equal(q, before, q.charged()-q.own())
		require.Greater(q, q.own(), int64(0))
	})
}

// drain spends what is leased.
func drain(q lender) error {
	synctest.Wait()
	for n := q.own(); n > 0; n = q.own() {
		h := q.holding()
		h.mu.Lock()
		h.spend(1, q.now())
		h.mu.Unlock()
	}
	return nil
}

func TestAnErrorIsThatOfAllWhoWait(t *testing.T) {
	down := fmt.Errorf("%w: it is down", ratelimit.ErrStore)
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		for range 10 {
			q.take(1)
		}
		require.NoError(q, drain(q))
		q.spy.hold = make(chan struct{})
		q.spy.first = func(context.Context) error { return down }
		errs := make(chan error, 5)
		for range cap(errs) {
			go func() {
				_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Take})
				errs <- err
			}()
		}
		synctest.Wait()
		calls := q.calls()
		close(q.spy.hold)
		for range cap(errs) {
			require.ErrorIs(q, <-errs, down)
		}
		require.Equal(q, calls, q.calls(), "one call for all")
		q.spy.first = nil
		require.True(q, q.take(1).Allowed, "it goes on")
	})
}

func TestAStoreThatNeverAnswers(t *testing.T) {
	lending(t, leasable, LeaseOptions{Timeout: 300 * time.Millisecond}, func(q lender) {
		for range 10 {
			q.take(1)
		}
		require.NoError(q, drain(q))
		q.spy.first = func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		begun := time.Now()
		_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Take})
		require.ErrorIs(q, err, ratelimit.ErrStore)
		require.Equal(q, 300*time.Millisecond, time.Since(begun))
		q.spy.first = nil
	})
}

func TestAPanicIsItsCallers(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		for range 10 {
			q.take(1)
		}
		require.NoError(q, drain(q))
		q.spy.first = func(context.Context) error { panic("ouch") }
		require.PanicsWithValue(q, "ouch", func() { q.take(1) })
		require.NoError(q, drain(q))
		q.spy.first = func(context.Context) error { runtime.Goexit(); return nil }
		_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Take})
		require.ErrorIs(q, err, ratelimit.ErrStore)
		q.spy.first = nil
		require.True(q, q.take(1).Allowed)
	})
}

func TestCloseDuringCalls(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		q.spy.first = func(context.Context) error { <-time.After(time.Millisecond); return nil }
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					q.take(1)
					<-time.After(100 * time.Microsecond)
				}
			})
		}
		<-time.After(7 * time.Millisecond)
		require.NoError(q, q.Close())
		require.Zero(q, q.own())
		all.Wait()
		require.EqualValues(q, 400, q.charged())
		require.Equal(q, ratelimit.FromStore, q.take(1).Source)
	})
}

func TestCloseDoesNotHang(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		q.warm()
		q.spy.hold = make(chan struct{})
		begun := time.Now()
		require.ErrorContains(q, q.Close(), "does not answer")
		require.Equal(q, 2*time.Second, time.Since(begun))
		close(q.spy.hold)
	})
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		q.warm()
		q.spy.first = func(context.Context) error { return ratelimit.ErrStore }
		require.ErrorIs(q, q.Close(), ratelimit.ErrStore)
	})
}

func TestLeaseKnowsABoundedNumberOfKeys(t *testing.T) {
	lending(t, leasable, LeaseOptions{MaxKeys: 640}, func(q lender) {
		known := func() (n int) {
			for i := range q.table.shards {
				n += q.table.shards[i].used
			}
			return n
		}
		ask := func(name string, keys int) {
			for i := range keys {
				_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: fmt.Sprint(name, i), N: 1, Kind: ratelimit.Take})
				require.NoError(q, err)
			}
		}
		ask("old", 5000)
		require.LessOrEqual(q, known(), 640)
		require.Greater(q, known(), 500)
		<-time.After(3 * time.Second)
		ask("new", 400) // by keys that come, old ones go
		require.LessOrEqual(q, known(), 400)
	})
}

func TestLeaseOptions(t *testing.T) {
	m, _ := newMemory(t)
	for field, o := range map[string]LeaseOptions{
		"Life is 1µs":      {Life: time.Microsecond},
		"Life is 2h0m0s":   {Life: 2 * time.Hour},
		"Max is -1":        {Max: -1},
		"Share is -1":      {Share: -1},
		"MaxKeys is -1":    {MaxKeys: -1},
		"MaxCalls is -1":   {MaxCalls: -1},
		"Timeout is -1ns,": {Timeout: -1},
	} {
		_, err := NewLease(m, o)
		require.ErrorContains(t, err, "layer: LeaseOptions."+field)
	}
	_, err := NewLease(nil, LeaseOptions{})
	require.ErrorContains(t, err, "store is nil")
	c, err := NewCoalesce(m, CoalesceOptions{})
	require.NoError(t, err)
	l, err := NewLease(c, LeaseOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	_, err = NewCoalesce(l, CoalesceOptions{})
	require.ErrorIs(t, err, ErrOrder)
	_, err = NewLease(l, LeaseOptions{})
	require.ErrorIs(t, err, ErrOrder)
}

func TestLeaseRefusesWhatIsInvalid(t *testing.T) {
	lending(t, leasable, LeaseOptions{}, func(q lender) {
		q.warm()
		for want, op := range map[error]ratelimit.Op{
			ratelimit.ErrOp:       {Rule: leasable, Key: "k", N: -1, Kind: ratelimit.Take},
			ratelimit.ErrTooLarge: {Rule: leasable, Key: "k", N: 1001, Kind: ratelimit.Take},
			ratelimit.ErrOverflow: {Rule: leasable, Key: "k", N: 1 << 54, Kind: ratelimit.Peek},
			ratelimit.ErrInterval: {Rule: leasable, Key: "k", Interval: time.Hour, Kind: ratelimit.Count},
		} {
			_, err := q.DoOne(q.Context(), op)
			require.ErrorIs(q, err, want)
		}
		_, err := q.DoOne(q.Context(), ratelimit.Op{Key: "k", N: 1, Kind: ratelimit.Take})
		require.ErrorIs(q, err, ratelimit.ErrOp)
		ctx, cancel := context.WithCancel(q.Context())
		cancel()
		_, err = q.DoOne(ctx, ratelimit.Op{Rule: leasable, Key: "k", N: 1, Kind: ratelimit.Take})
		require.ErrorIs(q, err, context.Canceled)
	})
}

// TestLeaseIsAStore runs the suite of stores through a layer that finds nothing worth a lease:
// the suite's clock isn't the layer's.
func TestLeaseIsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		m, clock := newMemory(t)
		l, err := NewLease(m, LeaseOptions{Max: 1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l, clock
	}, storetest.Everything)
}

func TestATakeFromALeaseCostsNoAllocation(t *testing.T) {
	m, err := ratelimit.NewMemory(ratelimit.MemoryOptions{})
	require.NoError(t, err)
	r := ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 1 << 40, Per: time.Hour}))
	l, err := NewLease(m, LeaseOptions{Life: time.Minute})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	op, leased := ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take}, 0
	for range 20_000 {
		res, err := l.DoOne(t.Context(), op)
		require.NoError(t, err)
		if res.Source == ratelimit.FromLease {
			leased++
		}
	}
	require.Greater(t, leased, 19_000)
	require.Less(t, testing.AllocsPerRun(1000, func() { _, _ = l.DoOne(t.Context(), op) }), 1.0)
}
