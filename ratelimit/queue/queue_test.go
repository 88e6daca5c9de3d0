package queue

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func TestCallersPassInOrderAtTheRulesPace(t *testing.T) {
	withQueue(t, paced(10, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		for id := range 5 {
			w.start(t.Context(), id, 1)
		}
		const tenth = 100 * time.Millisecond
		require.Equal(t, []outcome{{0, 0, nil}, {1, tenth, nil}, {2, 2 * tenth, nil}, {3, 3 * tenth, nil}, {4, 4 * tenth, nil}}, w.advance(time.Second))
		require.Len(t, w.spy.Calls(), 6, "the second caller was denied once")
	})
}

func TestPaceOfARuleWithBursts(t *testing.T) {
	at := func(ms ...int) (list []outcome) {
		for i, ms := range ms {
			list = append(list, outcome{5 + i, time.Duration(ms) * time.Millisecond, nil})
		}
		return list
	}
	for bursts, want := range map[bool][]outcome{
		false: at(1000, 1200, 1400, 1600, 1800, 2000),
		true:  at(1000, 1000, 1000, 1000, 1000, 2000),
	} {
		withQueue(t, window(5, time.Second), Options{Bursts: bursts}, func(t *testing.T, w *queueTest) {
			for id := range 5 {
				w.start(t.Context(), id, 1)
			}
			require.Len(t, w.advance(0), 5, "at once, as no caller waits")
			for id := 5; id < 11; id++ {
				w.start(t.Context(), id, 1)
			}
			require.Equal(t, want, w.advance(3*time.Second), "bursts: %v", bursts)
			require.Len(t, w.spy.Calls(), 12, "one was denied")
		})
	}
}

// TestCallersWaitForReleases checks that callers of a Concurrent wait for a release and not for the end of a life.
func TestCallersWaitForReleases(t *testing.T) {
	withQueue(t, ratelimit.Concurrent(1), Options{}, func(t *testing.T, w *queueTest) {
		held, err := w.Wait(t.Context(), "k", 1)
		require.NoError(t, err)
		w.start(t.Context(), 1, 1)
		require.Empty(t, w.advance(1500*time.Millisecond))
		released, err := w.limiter.Refund(t.Context(), "k", held)
		require.NoError(t, err)
		require.True(t, released)
		require.Equal(t, []outcome{{1, 2 * time.Second, nil}}, w.advance(time.Second))
	})
}

func TestLastUnitStartsThePace(t *testing.T) {
	withQueue(t, window(5, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		w.spy.Hold = make(chan struct{})
		for id := range 7 {
			w.start(t.Context(), id, 1)
		}
		close(w.spy.Hold)
		require.Len(t, w.advance(0), 5, "the whole quota, at once")
		require.Equal(t, []outcome{{5, time.Second, nil}, {6, 1200 * time.Millisecond, nil}}, w.advance(2*time.Second))
		require.Len(t, w.spy.Calls(), 7)
	})
}

func TestSlowStoreCausesNoBurst(t *testing.T) {
	withQueue(t, window(2, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		var calls atomic.Int32
		w.spy.Before = func(context.Context) error {
			if calls.Add(1) == 3 { // the first call of caller 1 is denied; this is its second call
				<-time.After(2 * time.Second)
			}
			return nil
		}
		w.start(t.Context(), 0, 2)
		require.Len(t, w.advance(0), 1)
		w.start(t.Context(), 1, 1)
		w.start(t.Context(), 2, 1)
		require.Equal(t, []outcome{{1, 3 * time.Second, nil}, {2, 3500 * time.Millisecond, nil}}, w.advance(5*time.Second))
	})
}

func TestLargeTakeIsNotOvertaken(t *testing.T) {
	withQueue(t, window(5, time.Second), Options{Bursts: true}, func(t *testing.T, w *queueTest) {
		w.start(t.Context(), 0, 3)
		w.start(t.Context(), 1, 4) // has to wait, because two units are left
		w.start(t.Context(), 2, 1) // must wait for caller 1, although a unit is left
		require.Equal(t, []outcome{{0, 0, nil}}, w.advance(time.Second/2))
		require.Equal(t, []outcome{{1, time.Second, nil}, {2, time.Second, nil}}, w.advance(time.Second))
	})
}

func TestCancelledWaitIsNotCharged(t *testing.T) {
	withQueue(t, window(5, time.Second), Options{Bursts: true}, func(t *testing.T, w *queueTest) {
		boom := errors.New("boom")
		first, leaveFirst := context.WithCancelCause(t.Context())
		last, leaveLast := context.WithCancelCause(t.Context())
		w.start(t.Context(), 0, 4)
		w.start(first, 1, 4)
		w.start(t.Context(), 2, 1)
		w.start(last, 3, 1)
		leaveLast(boom)
		leaveFirst(boom)
		require.ElementsMatch(t, []outcome{{3, 0, boom}, {1, 0, boom}, {0, 0, nil}, {2, 0, nil}}, w.advance(time.Millisecond),
			"2 passes as soon as 1, which alone had to wait, leaves")
		res, err := w.spy.Do(t.Context(), []ratelimit.Op{{Rule: w.rule, Key: "k", Kind: ratelimit.Count}})
		require.NoError(t, err)
		require.EqualValues(t, 5, res[0].Count)
	})
}

func TestWaitBeyondTheDeadlineFailsAtOnce(t *testing.T) {
	withQueue(t, window(1, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		soon, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		w.start(t.Context(), 0, 1)
		w.start(soon, 1, 1) // passes at 1 s
		w.start(soon, 2, 1) // passes at 2 s
		w.start(soon, 3, 1) // would pass at 3 s
		w.start(t.Context(), 4, 1)
		now := w.advance(0)
		require.Len(t, now, 2)
		require.Equal(t, 3, now[1].id)
		require.ErrorIs(t, now[1].err, ErrTooLong)
		var denied *ratelimit.DeniedError
		require.ErrorAs(t, now[1].err, &denied)
		require.Equal(t, ratelimit.DeniedError{Limit: 1, RetryAfter: 3 * time.Second}, *denied)
		require.Equal(t, []outcome{{1, time.Second, nil}, {2, 2 * time.Second, nil}}, w.advance(2100*time.Millisecond))
		later, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		w.start(later, 5, 1) // the estimate ignores callers that have passed
		require.Equal(t, []outcome{{4, 3 * time.Second, nil}, {5, 4 * time.Second, nil}}, w.advance(5*time.Second))
	})
	withQueue(t, window(1, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		soon, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		w.start(t.Context(), 0, 1)
		w.start(soon, 1, 1)
		done := w.advance(0)
		require.Len(t, done, 2, "the first in line, too")
		require.ErrorIs(t, done[1].err, ErrTooLong)
	})
}

func TestMaxWaiting(t *testing.T) {
	withQueue(t, window(1, time.Second), Options{MaxWaiting: 2}, func(t *testing.T, w *queueTest) {
		for id := range 4 {
			w.start(t.Context(), id, 1)
		}
		now := w.advance(0)
		require.Len(t, now, 2)
		require.ErrorIs(t, now[1].err, ErrFull)
		var denied *ratelimit.DeniedError
		require.ErrorAs(t, now[1].err, &denied)
		require.Equal(t, 3*time.Second, denied.RetryAfter)
		_, err := w.Wait(t.Context(), "another", 1)
		require.NoError(t, err, "by key")
		require.Len(t, w.advance(5*time.Second), 2)
	})
}

// TestRandomCallersPassInOrder starts and cancels waits of random sizes. It checks that callers pass in the order in which
// they came, and that no other caller is charged.
func TestRandomCallersPassInOrder(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		rule := []ratelimit.Rule{
			window(10, time.Second), paced(10, time.Second), ratelimit.GCRA(600, time.Minute),
			ratelimit.SlidingLog(10, time.Second),
		}[seed%4]
		withQueue(t, rule, Options{Bursts: random.IntN(2) == 0}, func(t *testing.T, w *queueTest) {
			want := map[int]int64{}
			for id := range 60 {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if random.IntN(4) == 0 {
					time.AfterFunc(time.Duration(random.IntN(5000))*time.Millisecond, cancel)
				}
				want[id] = 1 + random.Int64N(rule.Burst()/2+1)
				if rule.Burst() == 1 {
					want[id] = 1
				}
				w.start(ctx, id, want[id])
				<-time.After(time.Duration(random.IntN(100)) * time.Millisecond)
			}
			done := w.advance(10 * time.Minute)
			slices.SortFunc(done, func(a, b outcome) int { // callers that pass at the same time may return in any order
				return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
			})
			last, charged := -1, int64(0)
			for _, p := range done {
				if p.err != nil {
					require.ErrorIs(t, p.err, context.Canceled)
					continue
				}
				require.Greater(t, p.id, last, "seed %d", seed)
				last = p.id
				charged += want[p.id]
			}
			for _, res := range w.spy.Results() {
				charged -= res.Receipt.N
			}
			require.Zero(t, charged)
		})
	}
}

// TestHoldsAreRemoved checks that the number of holds stays small if many hosts make requests wait, and that a hold is
// kept until it is over.
func TestHoldsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &Transport{}
		rt.hold("slow", time.Hour)
		for i := range 3000 {
			rt.hold(strconv.Itoa(i), time.Second)
			require.LessOrEqual(t, len(rt.holds), 110)
			<-time.After(time.Second)
		}
		require.Contains(t, rt.holds, "slow")
	})
}
