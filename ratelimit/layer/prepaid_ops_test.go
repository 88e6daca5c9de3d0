package layer

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func TestOnlyTheStoreDenies(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
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

// TestOwnAllotmentsNeverDeny checks that a take within the limit passes although units of it are prepaid in this
// process.
func TestOwnAllotmentsNeverDeny(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		n := q.warm()
		res := q.take(1000 - n)
		require.True(q, res.Allowed)
		require.Zero(q, res.Remaining)
		require.Zero(q, q.available())
		require.EqualValues(q, 1000, q.charged())
		require.False(q, q.take(1).Allowed)
	})
}

// TestOwnAllotmentsOfAGCRANeverDeny checks that both allotments of a GCRA are given back for a large take. The newest
// has to go back first, because only the last charge can be refunded.
func TestOwnAllotmentsOfAGCRANeverDeny(t *testing.T) {
	withPrepaid(t, gcra(1000), PrepaidOptions{}, func(q prepaidTest) {
		q.warm()
		for q.key().next == nil {
			require.True(q, q.take(1).Allowed)
			synctest.Wait()
		}
		require.NotNil(q, q.key().current.Load())
		rest := q.ask(ratelimit.Peek, 1).Remaining
		require.Greater(q, rest, q.available())
		res := q.take(rest)
		require.True(q, res.Allowed)
		require.Zero(q, res.Remaining)
	})
}

func TestPeekAndCountSeePrepaidUnitsAsUnused(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		n := q.warm()
		require.Greater(q, q.available(), int64(0))
		require.Equal(q, n, q.ask(ratelimit.Count, 0).Count)
		res := q.ask(ratelimit.Peek, 1)
		require.True(q, res.Allowed)
		require.Equal(q, 1000-n, res.Remaining)
		require.Equal(q, ratelimit.Receipt{}, res.Receipt)

		res = q.ask(ratelimit.Peek, 1000-n)
		require.True(q, res.Allowed)
		require.Equal(q, 1000-n, res.Remaining)
		res = q.ask(ratelimit.Peek, 1001-n)
		require.False(q, res.Allowed)
		require.True(q, res.Violated)
		require.Equal(q, 1000-n, res.Remaining)

		res = q.ask(ratelimit.Add, 2000)
		require.Equal(q, 2000+n, res.Count)
		require.Equal(q, q.available(), res.Remaining, "which can still be spent")
	})
}

// TestPeekWithTheRestOfAAllotment checks that a peek never returns too many units, even if an allotment is too small
// for the next take and stays.
func TestPeekWithTheRestOfAAllotment(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		spent := int64(0)
		for range 100 {
			require.True(q, q.take(7).Allowed)
			spent += 7
			require.LessOrEqual(q, q.ask(ratelimit.Peek, 1).Remaining, 1000-spent)
		}
	})
}

// TestRefundOfPrepaidUnits checks that a refund gives units back to the store if they were prepaid.
func TestRefundOfPrepaidUnits(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		n := q.warm()
		res := q.take(1)
		require.Equal(q, ratelimit.FromPrepaid, res.Source)
		refund := func(c ratelimit.Receipt) bool {
			back, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", Kind: ratelimit.Refund, Receipt: c})
			require.NoError(q, err)
			require.Equal(q, ratelimit.FromStore, back.Source)
			return back.Allowed
		}
		require.True(q, refund(res.Receipt))
		synctest.Wait() // for the next allotment, if it has begun
		require.Equal(q, n+q.available(), q.charged(), "the refunded unit is neither taken nor prepaid")
		require.Equal(q, 1000-n, q.ask(ratelimit.Peek, 1).Remaining)
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Equal(q, n, q.charged(), "the rest of the allotment went back")
	})
}

func TestResetEndsAllotments(t *testing.T) {
	other := leasable.WithLimit(10)
	for name, reset := range map[string]func(q prepaidTest) error{
		"alone": func(q prepaidTest) error {
			_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: leasable, Key: "k", Kind: ratelimit.Reset})
			return err
		},
		"by another limit": func(q prepaidTest) error {
			_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: other, Key: "k", Kind: ratelimit.Reset})
			return err
		},
		"in a group": func(q prepaidTest) error {
			op := ratelimit.Op{Rule: leasable, Key: "k", Kind: ratelimit.Reset}
			_, err := q.Do(q.Context(), []ratelimit.Op{op, {Rule: leasable, Key: "k", Kind: ratelimit.Count}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
				q.warm()
				require.NoError(q, reset(q))
				require.Zero(q, q.available())
				require.Zero(q, q.charged())
				n := q.warm()
				require.Equal(q, n+q.available(), q.charged(), "there are new allotments")
			})
		})
	}
}

// TestNoAllotmentBeginsDuringAReset checks that the first takes of a key start no refill while a reset is on its way
// to the store.
func TestNoAllotmentBeginsDuringAReset(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		var called atomic.Bool
		arrive := make(chan struct{})
		q.spy.Before = func(context.Context) error {
			if !called.Swap(true) {
				<-arrive
			}
			return nil
		}
		go func() {
			_, _ = q.DoOne(q.Context(), ratelimit.Op{Rule: leasable.WithLimit(10), Key: "k", Kind: ratelimit.Reset})
		}()
		synctest.Wait()
		for range 20 {
			require.True(q, q.take(1).Allowed)
		}
		close(arrive)
		synctest.Wait()
		require.Zero(q, q.charged())
		require.Zero(q, q.available())
		n := q.warm()
		require.Equal(q, n+q.available(), q.charged(), "there are allotments after it")
	})
}

// TestResetEndsAAllotmentInFlight checks that an allotment is not spent if it was charged before a reset and its
// reply arrives after it.
func TestResetEndsAAllotmentInFlight(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		n := q.warm()
		q.spy.Hold = make(chan struct{})
		for q.key().refill == nil {
			q.take(1)
			n++
		}
		synctest.Wait() // the call is in flight
		go func() { q.spy.Hold <- struct{}{}; q.spy.Hold <- struct{}{} }()
		q.ask(ratelimit.Reset, 0)
		synctest.Wait()
		q.spy.Hold = nil
		require.Zero(q, q.available())
	})
}
