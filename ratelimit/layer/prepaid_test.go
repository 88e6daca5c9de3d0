package layer

import (
	"math"
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

// prepaidTest is a prepaid layer around a spy, in a synctest bubble.
type prepaidTest struct {
	*testing.T
	*prepaidLayer
	spy  *storespy.Spy
	rule ratelimit.Rule
}

func withPrepaid(t *testing.T, r ratelimit.Rule, o PrepaidOptions, test func(q prepaidTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, err := memstore.New(memstore.Options{})
		require.NoError(t, err)
		s := &storespy.Spy{Store: m}
		l, err := newPrepaid(s, o)
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		test(prepaidTest{t, l, s, r})
	})
}

func (q prepaidTest) ask(kind ratelimit.Kind, n int64) ratelimit.Result {
	q.Helper()
	res, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", N: n, Kind: kind})
	require.NoError(q, err)
	return res
}

func (q prepaidTest) take(n int64) ratelimit.Result {
	q.Helper()
	return q.ask(ratelimit.Take, n)
}

// charged returns the number of units that are charged in the store.
func (q prepaidTest) charged() int64 {
	out, err := q.spy.Store.Do(q.Context(), []ratelimit.Op{{Rule: q.rule, Key: "k", Kind: ratelimit.Count}})
	require.NoError(q, err)
	return out[0].Count
}

// warm takes units until the key has an allotment. It returns the number of units.
func (q prepaidTest) warm() (n int64) {
	q.Helper()
	for q.available() == 0 {
		n++
		require.True(q, q.take(1).Allowed)
		require.Less(q, n, int64(100))
	}
	synctest.Wait()
	return n
}

// available returns the number of prepaid units that can be spent.
func (q prepaidTest) available() int64 {
	if k := q.key(); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.available(q.sinceStart())
	}
	return 0
}

// key returns the state of the key, nil if there is none.
func (q prepaidTest) key() *keyState { return q.find(q.rule, "k") }

func (q prepaidTest) calls() int {
	return len(q.spy.Calls())
}

func TestAllotmentServesTakes(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		for taken := int64(1); taken <= 500; taken++ {
			res := q.take(1)
			require.True(q, res.Allowed)
			require.Equal(q, 1000-taken, res.Remaining, "this process is the only one")
			require.EqualValues(q, 1000, res.Limit)
			require.Zero(q, res.RetryAfter)
			synctest.Wait()
			require.Equal(q, taken+q.available(), q.charged())
			require.LessOrEqual(q, q.available(), int64(200), "two allotments of a tenth")
		}
		require.Less(q, q.calls(), 30)
		require.Equal(q, ratelimit.FromPrepaid, q.take(1).Source)
	})
}

func TestRarelyUsedKeyHasNoAllotment(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
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
	for name, end := range map[string]func(q prepaidTest){
		"at the end of its life": func(prepaidTest) { <-time.After(time.Second) },
		"on Close":               func(q prepaidTest) { require.NoError(q, q.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
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

// TestAllotmentLeavesMostOfTheRest checks that an allotment is at most a quarter of what the store has left, so that
// other processes get units as well.
func TestAllotmentLeavesMostOfTheRest(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{Share: 1}, func(q prepaidTest) {
		left := int64(400)
		_, err := q.spy.Store.Do(q.Context(), []ratelimit.Op{{Rule: q.rule, Key: "k", N: 1000 - left, Kind: ratelimit.Add}})
		require.NoError(q, err)
		for range 300 {
			require.True(q, q.take(1).Allowed)
			synctest.Wait()
		}
		allotments := 0
		for _, call := range q.spy.Calls() {
			op := call.Ops[0]
			if op.Prepaid > 0 {
				require.LessOrEqual(q, op.N, 1+left/4, "of %d", left)
				allotments++
			}
			left -= op.N
		}
		require.Greater(q, allotments, 1)
	})
}

// TestAllotmentFollowsDemand checks that an allotment has about half of the units that are taken in a lifetime. This
// shows that the demand counts each unit once.
func TestAllotmentFollowsDemand(t *testing.T) {
	withPrepaid(t, ratelimit.SlidingLog(1_000_000, time.Hour), PrepaidOptions{}, func(q prepaidTest) {
		for range 1000 {
			require.True(q, q.take(1).Allowed)
			<-time.After(5 * time.Millisecond)
		}
		newest := int64(0)
		for _, call := range q.spy.Calls() {
			if op := call.Ops[0]; op.Prepaid > 0 {
				newest = op.N
			}
		}
		require.InDelta(q, 100, newest, 20)
	})
}

func TestAllotmentEndsWithItsBucketOrWindow(t *testing.T) {
	for _, r := range []ratelimit.Rule{
		ratelimit.FixedWindow(1000, 20*time.Second),
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1000, Per: 20 * time.Second, Interval: 20 * time.Second, Span: time.Minute}),
	} {
		t.Run(r.Algorithm(), func(t *testing.T) {
			withPrepaid(t, r, PrepaidOptions{}, func(q prepaidTest) {
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

func TestRulesWithoutAllotments(t *testing.T) {
	for name, r := range map[string]ratelimit.Rule{
		"with a Block":      ratelimit.SlidingLog(1000, time.Minute).WithBlock(ratelimit.Block{After: 1, For: time.Minute}),
		"concurrent":        ratelimit.Concurrent(1000),
		"of few units":      ratelimit.SlidingLog(19, time.Minute),
		"too short":         ratelimit.SlidingLog(1000, 19*time.Millisecond),
		"of a short refill": ratelimit.GCRA(100_000, time.Minute).WithBurst(30),
	} {
		t.Run(name, func(t *testing.T) {
			withPrepaid(t, r, PrepaidOptions{}, func(q prepaidTest) {
				for range r.Burst() {
					require.Equal(q, ratelimit.FromStore, q.take(1).Source)
				}
				require.EqualValues(q, r.Burst(), q.calls())
			})
		})
	}
}

func TestConcurrentTakesFromOneAllotment(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
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

// TestAllotmentConformsToStore runs storetest on a layer that takes no allotments, because the clock of the suite is
// not the layer's clock.
func TestAllotmentConformsToStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		m, clock := newMemory(t)
		l, err := newPrepaid(m, PrepaidOptions{Share: math.MaxInt64})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l, clock
	}, storetest.Everything)
}

func TestTakeFromAAllotmentAllocatesNothing(t *testing.T) {
	m, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	r := ratelimit.SlidingLog(1<<40, time.Hour)
	l, err := newPrepaid(m, PrepaidOptions{Lifetime: time.Minute})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	op, prepaid := ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take}, 0
	for range 20_000 {
		res, err := l.DoOne(t.Context(), op)
		require.NoError(t, err)
		if res.Source == ratelimit.FromPrepaid {
			prepaid++
		}
	}
	require.Greater(t, prepaid, 19_000)
	require.Less(t, testing.AllocsPerRun(1000, func() { _, _ = l.DoOne(t.Context(), op) }), 1.0)
}
