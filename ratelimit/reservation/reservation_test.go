package reservation

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// reserverTest is a Reserver whose store is a spy.
type reserverTest struct {
	*Reserver
	rule ratelimit.Rule
	spy  *storespy.Spy
}

func newReserverTest(tb testing.TB, rule ratelimit.Rule, o Options) *reserverTest {
	memory, err := memstore.New(memstore.Options{Clock: time.Now})
	require.NoError(tb, err)
	s := &storespy.Spy{Store: memory}
	r, err := New(s, rule, o)
	require.NoError(tb, err)
	return &reserverTest{r, rule, s}
}

// used returns the number of units that are charged under a rule with a limit of 10.
func (r *reserverTest) used(tb testing.TB) int64 {
	res, err := r.spy.Store.Do(tb.Context(), []ratelimit.Op{{Rule: r.rule, Key: "k", N: 1, Kind: ratelimit.Peek}})
	require.NoError(tb, err)
	return 10 - res[0].Remaining
}

func (r *reserverTest) reserve(tb testing.TB, n int64) *Reservation {
	v, err := r.Reserve(tb.Context(), "k", n)
	require.NoError(tb, err)
	r.spy.Drain()
	return v
}

func window(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.FixedWindow(limit, per)
}

// tens returns rules that have a limit of 10 per minute.
func tens() []ratelimit.Rule {
	log := ratelimit.SlidingLog(10, time.Minute)
	return []ratelimit.Rule{
		ratelimit.PerMinute(10),
		log, log.WithStream(), window(10, time.Minute),
		ratelimit.GCRA(10, time.Minute),
	}
}

// forEachRule runs test with each rule of tens, in a synctest bubble.
func forEachRule(t *testing.T, o Options, test func(t *testing.T, r *reserverTest)) {
	for _, rule := range tens() {
		t.Run(rule.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newReserverTest(t, rule, o)) })
		})
	}
}

func TestCommit(t *testing.T) {
	forEachRule(t, Options{}, func(t *testing.T, r *reserverTest) {
		for actual, want := range []Settlement{
			{Charged: 0, Returned: 4}, {Charged: 1, Returned: 3}, 4: {Charged: 4}, 6: {Charged: 6, Added: 2}, 13: {Charged: 13, Added: 9},
		} {
			if want == (Settlement{}) {
				continue
			}
			v := r.reserve(t, 4)
			require.True(t, v.Result().Allowed)
			require.EqualValues(t, 4, r.used(t))
			got, err := v.Commit(t.Context(), int64(actual))
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.EqualValues(t, min(actual, 10), r.used(t))
			calls := 1
			if actual == 4 {
				calls = 0
			}
			require.Len(t, r.spy.Drain(), calls)
			_, err = r.spy.Do(t.Context(), []ratelimit.Op{{Rule: r.rule, Key: "k", Kind: ratelimit.Reset}})
			require.NoError(t, err)
		}
	})
}

func TestReservationIsCompletedOnce(t *testing.T) {
	forEachRule(t, Options{}, func(t *testing.T, r *reserverTest) {
		v := r.reserve(t, 4)
		r.spy.Hold = make(chan struct{})
		var settlers sync.WaitGroup
		outcomes := make(chan Settlement, 20)
		for i := range int64(20) {
			settlers.Go(func() {
				settle := v.Cancel
				if i%2 == 0 {
					settle = func(ctx context.Context) (Settlement, error) { return v.Commit(ctx, i) }
				}
				s, err := settle(t.Context())
				if err != nil {
					t.Error(err)
				}
				outcomes <- s
			})
		}
		synctest.Wait()
		close(r.spy.Hold)
		settlers.Wait()
		first := <-outcomes
		for range 19 {
			require.Equal(t, first, <-outcomes)
		}
		require.LessOrEqual(t, len(r.spy.Drain()), 1, "Commit of 4 asks nothing")
		require.EqualValues(t, min(first.Charged, 10), r.used(t))
		s, err := v.Cancel(t.Context())
		require.NoError(t, err)
		require.Equal(t, first, s)
	})
}

func TestCommitAfterAnotherCharge(t *testing.T) {
	forEachRule(t, Options{}, func(t *testing.T, r *reserverTest) {
		v := r.reserve(t, 4)
		r.reserve(t, 1)
		s, err := v.Commit(t.Context(), 1)
		require.NoError(t, err)
		if r.rule.Algorithm() == "gcra" {
			require.Equal(t, Settlement{Charged: 4}, s, "something was charged since")
			require.EqualValues(t, 5, r.used(t))
			return
		}
		require.Equal(t, Settlement{Charged: 1, Returned: 3}, s)
		require.EqualValues(t, 2, r.used(t))
	})
}

func TestExpiry(t *testing.T) {
	forEachRule(t, Options{Lifetime: 10 * time.Second}, func(t *testing.T, r *reserverTest) {
		v, more, same, soon := r.reserve(t, 2), r.reserve(t, 2), r.reserve(t, 2), r.reserve(t, 2)
		<-time.After(10*time.Second - 1)
		s, err := soon.Cancel(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Returned)
		<-time.After(1)
		r.spy.Drain()

		s, err = v.Commit(t.Context(), 1)
		require.ErrorIs(t, err, ErrExpired)
		require.Equal(t, Settlement{Charged: 2}, s)
		_, err = v.Cancel(t.Context())
		require.ErrorIs(t, err, ErrExpired)
		s, err = same.Commit(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, Settlement{Charged: 2}, s)
		require.Empty(t, r.spy.Drain())
		s, err = more.Commit(t.Context(), 3)
		require.NoError(t, err, "missing units are charged after the lifetime, too")
		require.Equal(t, Settlement{Charged: 3, Added: 1}, s)
	})
}

func TestDeniedReservation(t *testing.T) {
	r := newReserverTest(t, window(10, time.Minute), Options{})
	r.reserve(t, 8)
	v := r.reserve(t, 3)
	require.False(t, v.Result().Allowed)
	var denied *ratelimit.DeniedError
	_, err := v.Commit(t.Context(), 1)
	require.ErrorAs(t, err, &denied)
	s, err := v.Cancel(t.Context())
	require.NoError(t, err)
	require.Zero(t, s)
	require.Empty(t, r.spy.Drain())
	require.EqualValues(t, 8, r.used(t))
}

func TestFailedStoreIsNotAskedTwice(t *testing.T) {
	for actual, max := range map[int64]int64{1: 4, 6: 6} {
		r := newReserverTest(t, window(10, time.Minute), Options{})
		v := r.reserve(t, 4)
		r.spy.Before = func(context.Context) error { return ratelimit.ErrStore }
		for range 2 {
			s, err := v.Commit(t.Context(), actual)
			require.ErrorIs(t, err, ratelimit.ErrStore)
			require.Equal(t, Settlement{Charged: max}, s)
		}
		require.Len(t, r.spy.Drain(), 1)
	}
}

func TestPanicOfTheStore(t *testing.T) {
	for actual, charged := range map[int64]int64{0: 4, 7: 7} { // charged is the larger of estimate and actual
		r := newReserverTest(t, window(10, time.Minute), Options{})
		v := r.reserve(t, 4)
		r.spy.Before = func(context.Context) error { panic("boom") }
		require.PanicsWithValue(t, "boom", func() { _, _ = v.Commit(t.Context(), actual) })
		s, err := v.Cancel(t.Context())
		require.ErrorIs(t, err, ratelimit.ErrStore)
		require.Equal(t, Settlement{Charged: charged}, s)
	}
}

func TestCancelledContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReserverTest(t, window(10, time.Minute), Options{})
		v := r.reserve(t, 4)
		boom := errors.New("boom")
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(boom)
		for range 20 {
			_, err := v.Cancel(gone)
			require.ErrorIs(t, err, boom)
		}
		require.Empty(t, r.spy.Drain(), "not completed yet")

		r.spy.Hold = make(chan struct{})
		done := make(chan Settlement)
		go func() {
			s, _ := v.Commit(t.Context(), 3)
			done <- s
		}()
		synctest.Wait()
		soon, cancelSoon := context.WithTimeout(t.Context(), time.Second)
		defer cancelSoon()
		_, err := v.Cancel(soon)
		require.ErrorIs(t, err, context.DeadlineExceeded, "another call completes it, and the store hangs")
		r.spy.Hold <- struct{}{}
		require.Equal(t, Settlement{Charged: 3, Returned: 1}, <-done)
	})
}

func TestChargeWithoutReceiptIsNotGivenBack(t *testing.T) {
	r, err := New(storespy.Func(func(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
		return []ratelimit.Result{{Allowed: true, Source: ratelimit.FromAllowList}}, nil
	}), window(10, time.Minute), Options{})
	require.NoError(t, err)
	v, err := r.Reserve(t.Context(), "k", 4)
	require.NoError(t, err)
	s, err := v.Cancel(t.Context())
	require.NoError(t, err)
	require.Equal(t, Settlement{Charged: 4}, s)
}

func TestInvalidArguments(t *testing.T) {
	r := newReserverTest(t, window(10, time.Minute), Options{})
	_, err := r.Reserve(t.Context(), "k", 11)
	require.ErrorIs(t, err, ratelimit.ErrTooLarge)
	_, err = r.Reserve(t.Context(), "k", -1)
	require.ErrorIs(t, err, ratelimit.ErrOp)
	_, err = r.reserve(t, 1).Commit(t.Context(), -1)
	require.ErrorIs(t, err, ratelimit.ErrOp)
	for want, make := range map[string]func() (*Reserver, error){
		"store is nil":          func() (*Reserver, error) { return New((*memstore.Store)(nil), r.rule, Options{}) },
		"Rule is the zero Rule": func() (*Reserver, error) { return New(r.spy, ratelimit.Rule{}, Options{}) },
		"Options.Lifetime is -1s,": func() (*Reserver, error) {
			return New(r.spy, r.rule, Options{Lifetime: -time.Second})
		},
	} {
		_, err := make()
		require.ErrorContains(t, err, want)
	}
}
