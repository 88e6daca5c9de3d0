package layer

import (
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

var leasable = ratelimit.SlidingLog(1000, time.Minute)

// leaseTest is a lease layer in a synctest bubble, over a spy.
type leaseTest struct {
	*testing.T
	*leaseLayer
	spy  *storespy.Spy
	rule ratelimit.Rule
}

func withLease(t *testing.T, r ratelimit.Rule, o LeaseOptions, test func(q leaseTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, err := memstore.New(memstore.Options{})
		require.NoError(t, err)
		s := &storespy.Spy{Store: m}
		l, err := newLease(s, o)
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		test(leaseTest{t, l, s, r})
	})
}

func (q leaseTest) ask(kind ratelimit.Kind, n int64) ratelimit.Result {
	q.Helper()
	res, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", N: n, Kind: kind})
	require.NoError(q, err)
	return res
}

func (q leaseTest) take(n int64) ratelimit.Result {
	q.Helper()
	return q.ask(ratelimit.Take, n)
}

// charged returns the units that are charged in the store.
func (q leaseTest) charged() int64 {
	out, err := q.spy.Store.Do(q.Context(), []ratelimit.Op{{Rule: q.rule, Key: "k", Kind: ratelimit.Count}})
	require.NoError(q, err)
	return out[0].Count
}

// warm takes units until there is a lease, and returns how many.
func (q leaseTest) warm() (n int64) {
	q.Helper()
	for q.available() == 0 {
		n++
		require.True(q, q.take(1).Allowed)
		require.Less(q, n, int64(100))
	}
	synctest.Wait()
	return n
}

// available returns how many units are leased.
func (q leaseTest) available() int64 {
	if k := q.key(); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.available(q.sinceStart())
	}
	return 0
}

// key returns the state of the key, nil if there is none.
func (q leaseTest) key() *keyState { return q.ruleFor(q.rule).find("k") }

func (q leaseTest) calls() int {
	return len(q.spy.Calls())
}

func TestLeaseServesTakes(t *testing.T) {
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
		for taken := int64(1); taken <= 500; taken++ {
			res := q.take(1)
			require.True(q, res.Allowed)
			require.Equal(q, 1000-taken, res.Remaining, "this process is the only one")
			require.EqualValues(q, 1000, res.Limit)
			require.Zero(q, res.RetryAfter)
			synctest.Wait()
			require.Equal(q, taken+q.available(), q.charged())
			require.LessOrEqual(q, q.available(), int64(200), "two leases of a tenth")
		}
		require.Less(q, q.calls(), 30)
		require.Equal(q, ratelimit.FromLease, q.take(1).Source)
	})
}

func TestRarelyUsedKeyHasNoLease(t *testing.T) {
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
		for range 100 {
			res := q.take(1)
			require.Equal(q, ratelimit.FromStore, res.Source)
			require.Zero(q, q.available())
			<-time.After(400 * time.Millisecond)
		}
		require.Equal(q, 100, q.calls())
		for _, call := range q.spy.Calls() {
			require.Zero(q, call.Ops[0].Prepaid)
		}
	})
}

func TestUnspentUnitsGoBack(t *testing.T) {
	for name, end := range map[string]func(q leaseTest){
		"at the end of its life": func(leaseTest) { <-time.After(time.Second) },
		"on Close":               func(q leaseTest) { require.NoError(q, q.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
				n := q.warm()
				require.Greater(q, q.charged(), n)
				end(q)
				synctest.Wait()
				require.Equal(q, n, q.charged())
				require.Zero(q, q.available())
			})
		})
	}
}

// A lease is at most a quarter of what the store has left, so that other processes get units, too.
func TestLeaseLeavesMostOfTheRest(t *testing.T) {
	withLease(t, leasable, LeaseOptions{Share: 1}, func(q leaseTest) {
		left := int64(400)
		_, err := q.spy.Store.Do(q.Context(), []ratelimit.Op{{Rule: q.rule, Key: "k", N: 1000 - left, Kind: ratelimit.Add}})
		require.NoError(q, err)
		for range 300 {
			require.True(q, q.take(1).Allowed)
			synctest.Wait()
		}
		leases := 0
		for _, call := range q.spy.Calls() {
			op := call.Ops[0]
			if op.Prepaid > 0 {
				require.LessOrEqual(q, op.N, 1+left/4, "of %d", left)
				leases++
			}
			left -= op.N
		}
		require.Greater(q, leases, 1)
	})
}

func TestLeaseEndsWithItsBucketOrWindow(t *testing.T) {
	for _, r := range []ratelimit.Rule{
		ratelimit.FixedWindow(1000, 20*time.Second),
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1000, Per: 20 * time.Second, Interval: 20 * time.Second, Span: time.Minute}),
	} {
		t.Run(r.Algorithm(), func(t *testing.T) {
			withLease(t, r, LeaseOptions{}, func(q leaseTest) {
				if r.Algorithm() == "window" {
					q.take(1) // begins one
				}
				<-time.After(20*time.Second - 100*time.Millisecond)
				q.warm()
				end := q.key().current.Load().end - q.sinceStart()
				require.LessOrEqual(q, end, 100*time.Millisecond-time.Microsecond)
				require.Greater(q, end, 99*time.Millisecond, "a little earlier, for clocks that are not alike")
				<-time.After(end)
				require.Zero(q, q.available())
			})
		})
	}
}

func TestRulesWithoutLeases(t *testing.T) {
	for name, r := range map[string]ratelimit.Rule{
		"with a Block":      ratelimit.SlidingLog(1000, time.Minute).WithBlock(ratelimit.Block{After: 1, For: time.Minute}),
		"of few units":      ratelimit.SlidingLog(19, time.Minute),
		"too short":         ratelimit.SlidingLog(1000, 19*time.Millisecond),
		"of a short refill": ratelimit.GCRA(100_000, time.Minute).WithBurst(30),
	} {
		t.Run(name, func(t *testing.T) {
			withLease(t, r, LeaseOptions{}, func(q leaseTest) {
				for range r.Burst() {
					require.Equal(q, ratelimit.FromStore, q.take(1).Source)
				}
				require.EqualValues(q, r.Burst(), q.calls())
			})
		})
	}
}

func TestConcurrentTakesFromOneLease(t *testing.T) {
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
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

// TestLeaseConformsToStore runs storetest on a layer that takes no leases: the suite's clock isn't the
// layer's.
func TestLeaseConformsToStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		m, clock := newMemory(t)
		l, err := newLease(m, LeaseOptions{Max: 1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l, clock
	}, storetest.Everything)
}

func TestTakeFromALeaseAllocatesNothing(t *testing.T) {
	m, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	r := ratelimit.SlidingLog(1<<40, time.Hour)
	l, err := newLease(m, LeaseOptions{Lifetime: time.Minute})
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
