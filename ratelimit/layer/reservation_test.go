package layer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// reserving is reservations over a spy.
type reserving struct {
	*Reservations
	spy *spy
}

func newReserving(tb testing.TB, rule ratelimit.Rule, o ReservationOptions) *reserving {
	memory, err := memstore.New(memstore.Options{Clock: time.Now})
	require.NoError(tb, err)
	s := &spy{Store: memory}
	r, err := NewReservations(s, rule, o)
	require.NoError(tb, err)
	return &reserving{r, s}
}

// used returns how many units of 10 are gone.
func (r *reserving) used(tb testing.TB) int64 {
	res, err := r.spy.Store.Do(tb.Context(), []ratelimit.Op{{Rule: r.rule, Key: "k", N: 1, Kind: ratelimit.Peek}})
	require.NoError(tb, err)
	return 10 - res[0].Remaining
}

func (r *reserving) reserve(tb testing.TB, n int64) *Reservation {
	v, err := r.Reserve(tb.Context(), "k", n)
	require.NoError(tb, err)
	r.spy.hows()
	return v
}

// tens are rules of 10 a minute.
func tens() []ratelimit.Rule {
	log := func(e ratelimit.Encoding) ratelimit.Rule {
		return ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 10, Per: time.Minute, Encoding: e}))
	}
	return []ratelimit.Rule{
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Limit: 10, Per: time.Minute})),
		log(ratelimit.SortedSet), log(ratelimit.Stream), fixed(10, time.Minute), gcra(10),
	}
}

// inBubbleOfEach runs test with each rule where time stands still.
func inBubbleOfEach(t *testing.T, o ReservationOptions, test func(t *testing.T, r *reserving)) {
	for _, rule := range tens() {
		t.Run(rule.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newReserving(t, rule, o)) })
		})
	}
}

func TestAReservationIsSettled(t *testing.T) {
	inBubbleOfEach(t, ReservationOptions{}, func(t *testing.T, r *reserving) {
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
			require.Len(t, r.spy.hows(), calls)
			_, err = r.spy.Do(t.Context(), []ratelimit.Op{{Rule: r.rule, Key: "k", Kind: ratelimit.Reset}})
			require.NoError(t, err)
		}
	})
}

func TestAReservationIsSettledOnce(t *testing.T) {
	inBubbleOfEach(t, ReservationOptions{}, func(t *testing.T, r *reserving) {
		v := r.reserve(t, 4)
		r.spy.hold = make(chan struct{})
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
		close(r.spy.hold)
		settlers.Wait()
		first := <-outcomes
		for range 19 {
			require.Equal(t, first, <-outcomes)
		}
		require.LessOrEqual(t, len(r.spy.hows()), 1, "Commit of 4 asks nothing")
		require.EqualValues(t, min(first.Charged, 10), r.used(t))
		s, err := v.Cancel(t.Context())
		require.NoError(t, err)
		require.Equal(t, first, s)
	})
}

func TestWhatCannotBeGivenBackStaysCharged(t *testing.T) {
	inBubbleOfEach(t, ReservationOptions{}, func(t *testing.T, r *reserving) {
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

func TestAReservationExpires(t *testing.T) {
	inBubbleOfEach(t, ReservationOptions{Life: 10 * time.Second}, func(t *testing.T, r *reserving) {
		v, more, same, soon := r.reserve(t, 2), r.reserve(t, 2), r.reserve(t, 2), r.reserve(t, 2)
		<-time.After(10*time.Second - 1)
		s, err := soon.Cancel(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Returned)
		<-time.After(1)
		r.spy.hows()

		s, err = v.Commit(t.Context(), 1)
		require.ErrorIs(t, err, ErrReservationExpired)
		require.Equal(t, Settlement{Charged: 2}, s)
		_, err = v.Cancel(t.Context())
		require.ErrorIs(t, err, ErrReservationExpired)
		s, err = same.Commit(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, Settlement{Charged: 2}, s)
		require.Empty(t, r.spy.hows())
		s, err = more.Commit(t.Context(), 3)
		require.NoError(t, err, "what was used is charged all the same")
		require.Equal(t, Settlement{Charged: 3, Added: 1}, s)
	})
}

func TestADeniedReservation(t *testing.T) {
	r := newReserving(t, fixed(10, time.Minute), ReservationOptions{})
	r.reserve(t, 8)
	v := r.reserve(t, 3)
	require.False(t, v.Result().Allowed)
	var denied *ratelimit.DeniedError
	_, err := v.Commit(t.Context(), 1)
	require.ErrorAs(t, err, &denied)
	s, err := v.Cancel(t.Context())
	require.NoError(t, err)
	require.Zero(t, s)
	require.Empty(t, r.spy.hows())
	require.EqualValues(t, 8, r.used(t))
}

func TestAStoreThatFailsIsNotAskedTwice(t *testing.T) {
	for actual, most := range map[int64]int64{1: 4, 6: 6} {
		r := newReserving(t, fixed(10, time.Minute), ReservationOptions{})
		v := r.reserve(t, 4)
		r.spy.first = func(context.Context) error { return ratelimit.ErrStore }
		for range 2 {
			s, err := v.Commit(t.Context(), actual)
			require.ErrorIs(t, err, ratelimit.ErrStore)
			require.Equal(t, Settlement{Charged: most}, s)
		}
		require.Len(t, r.spy.hows(), 1)
	}
}

func TestAStoreThatPanicsWhileSettling(t *testing.T) {
	r := newReserving(t, fixed(10, time.Minute), ReservationOptions{})
	v := r.reserve(t, 4)
	r.spy.first = func(context.Context) error { panic("boom") }
	require.PanicsWithValue(t, "boom", func() { _, _ = v.Cancel(t.Context()) })
	s, err := v.Cancel(t.Context())
	require.ErrorIs(t, err, ratelimit.ErrStore)
	require.Equal(t, Settlement{Charged: 4}, s)
}

func TestWhoLeavesASettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReserving(t, fixed(10, time.Minute), ReservationOptions{})
		v := r.reserve(t, 4)
		boom := errors.New("boom")
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(boom)
		for range 20 {
			_, err := v.Cancel(gone)
			require.ErrorIs(t, err, boom)
		}
		require.Empty(t, r.spy.hows(), "not settled yet")

		r.spy.hold = make(chan struct{})
		done := make(chan Settlement)
		go func() {
			s, _ := v.Commit(t.Context(), 3)
			done <- s
		}()
		synctest.Wait()
		soon, cancelSoon := context.WithTimeout(t.Context(), time.Second)
		defer cancelSoon()
		_, err := v.Cancel(soon)
		require.ErrorIs(t, err, context.DeadlineExceeded, "another settles it, and the store hangs")
		r.spy.hold <- struct{}{}
		require.Equal(t, Settlement{Charged: 3, Returned: 1}, <-done)
	})
}

// passesAll is a layer that lets all pass, and has no receipt.
type passesAll struct{ ratelimit.Store }

func (passesAll) Do(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
	return []ratelimit.Result{{Allowed: true, Source: ratelimit.FromAllowList}}, nil
}

func TestAChargeWithoutAReceiptIsNotGivenBack(t *testing.T) {
	r, err := NewReservations(passesAll{}, fixed(10, time.Minute), ReservationOptions{})
	require.NoError(t, err)
	v, err := r.Reserve(t.Context(), "k", 4)
	require.NoError(t, err)
	s, err := v.Cancel(t.Context())
	require.NoError(t, err)
	require.Equal(t, Settlement{Charged: 4}, s)
}

func TestWhatReservationsRefuse(t *testing.T) {
	r := newReserving(t, fixed(10, time.Minute), ReservationOptions{})
	_, err := r.Reserve(t.Context(), "k", 11)
	require.ErrorIs(t, err, ratelimit.ErrTooLarge)
	_, err = r.Reserve(t.Context(), "k", -1)
	require.ErrorIs(t, err, ratelimit.ErrOp)
	_, err = r.reserve(t, 1).Commit(t.Context(), -1)
	require.ErrorIs(t, err, ratelimit.ErrOp)
	for want, make := range map[string]func() (*Reservations, error){
		"store is nil":         func() (*Reservations, error) { return NewReservations(nil, r.rule, ReservationOptions{}) },
		"no rule has no limit": func() (*Reservations, error) { return NewReservations(r.spy, ratelimit.Rule{}, ReservationOptions{}) },
		"ReservationOptions.Life is -1s,": func() (*Reservations, error) {
			return NewReservations(r.spy, r.rule, ReservationOptions{Life: -time.Second})
		},
	} {
		_, err := make()
		require.ErrorContains(t, err, want)
	}
}
