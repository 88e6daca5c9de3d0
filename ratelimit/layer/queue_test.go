package layer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// waitLine is a queue over a spy, in a bubble: times are exact.
type waitLine struct {
	*Queue
	spy   *spy
	began time.Time

	mu     sync.Mutex
	passed []pass
}

// pass is what a wait came to.
type pass struct {
	id  int
	at  time.Duration
	err error
}

func inLine(t *testing.T, rule ratelimit.Rule, o QueueOptions, test func(t *testing.T, w *waitLine)) {
	synctest.Test(t, func(t *testing.T) {
		memory, err := memstore.New(memstore.Options{Clock: time.Now})
		require.NoError(t, err)
		w := &waitLine{spy: &spy{Store: memory}, began: time.Now()}
		w.Queue, err = NewQueue(w.spy, rule, o)
		require.NoError(t, err)
		test(t, w)
		synctest.Wait()
		require.Empty(t, w.lines, "nothing is left behind")
	})
}

// come has a caller wait on a goroutine of its own, and returns when it stands in line or
// is through.
func (w *waitLine) come(ctx context.Context, id int, n int64) {
	go func() {
		_, err := w.Wait(ctx, "k", n)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.passed = append(w.passed, pass{id, time.Since(w.began), err})
	}()
	synctest.Wait()
}

// after lets time pass, and returns who is through since the last time.
func (w *waitLine) after(d time.Duration) []pass {
	<-time.After(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	done := w.passed
	w.passed = nil
	return done
}

func fixed(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: limit, Per: per}))
}

func evenly(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: limit, Per: per, Burst: 1}))
}

func TestAQueueIsServedInOrderAndEvenly(t *testing.T) {
	inLine(t, evenly(10, time.Second), QueueOptions{}, func(t *testing.T, w *waitLine) {
		for id := range 5 {
			w.come(t.Context(), id, 1)
		}
		require.Equal(t, 4, w.Waiting("k"))
		require.Zero(t, w.Waiting("another"))
		const tenth = 100 * time.Millisecond
		require.Equal(t, []pass{{0, 0, nil}, {1, tenth, nil}, {2, 2 * tenth, nil}, {3, 3 * tenth, nil}, {4, 4 * tenth, nil}}, w.after(time.Second))
		require.Len(t, w.spy.calls, 6, "one asks in vain: the line has just begun")
	})
}

func TestAQueuePacesWhatTheRuleDoesNot(t *testing.T) {
	at := func(ms ...int) (list []pass) {
		for i, ms := range ms {
			list = append(list, pass{5 + i, time.Duration(ms) * time.Millisecond, nil})
		}
		return list
	}
	for bursts, want := range map[bool][]pass{
		false: at(1000, 1200, 1400, 1600, 1800, 2000),
		true:  at(1000, 1000, 1000, 1000, 1000, 2000),
	} {
		inLine(t, fixed(5, time.Second), QueueOptions{Bursts: bursts}, func(t *testing.T, w *waitLine) {
			for id := range 5 {
				w.come(t.Context(), id, 1)
			}
			require.Len(t, w.after(0), 5, "at once, as nobody waits")
			for id := 5; id < 11; id++ {
				w.come(t.Context(), id, 1)
			}
			require.Equal(t, want, w.after(3*time.Second), "bursts: %v", bursts)
			require.Len(t, w.spy.calls, 12, "one in vain")
		})
	}
}

func TestTheLastUnitBeginsThePace(t *testing.T) {
	inLine(t, fixed(5, time.Second), QueueOptions{}, func(t *testing.T, w *waitLine) {
		w.spy.hold = make(chan struct{})
		for id := range 7 {
			w.come(t.Context(), id, 1)
		}
		close(w.spy.hold)
		require.Len(t, w.after(0), 5, "all that there is, at once")
		require.Equal(t, []pass{{5, time.Second, nil}, {6, 1200 * time.Millisecond, nil}}, w.after(2*time.Second))
		require.Len(t, w.spy.calls, 7)
	})
}

func TestASlowStoreIsNotMadeUpFor(t *testing.T) {
	inLine(t, fixed(2, time.Second), QueueOptions{}, func(t *testing.T, w *waitLine) {
		var calls atomic.Int32
		w.spy.first = func(context.Context) error {
			if calls.Add(1) == 3 { // the first is denied, and then asks again
				<-time.After(2 * time.Second)
			}
			return nil
		}
		w.come(t.Context(), 0, 2)
		require.Len(t, w.after(0), 1)
		w.come(t.Context(), 1, 1)
		w.come(t.Context(), 2, 1)
		require.Equal(t, []pass{{1, 3 * time.Second, nil}, {2, 3500 * time.Millisecond, nil}}, w.after(5*time.Second))
	})
}

func TestAQueueWaitsForLargeOnes(t *testing.T) {
	inLine(t, fixed(5, time.Second), QueueOptions{Bursts: true}, func(t *testing.T, w *waitLine) {
		w.come(t.Context(), 0, 3)
		w.come(t.Context(), 1, 4) // does not fit
		w.come(t.Context(), 2, 1) // would, but came later
		require.Equal(t, []pass{{0, 0, nil}}, w.after(time.Second/2))
		require.Equal(t, []pass{{1, time.Second, nil}, {2, time.Second, nil}}, w.after(time.Second))
	})
}

func TestWhoLeavesAQueueIsNotCharged(t *testing.T) {
	inLine(t, fixed(5, time.Second), QueueOptions{Bursts: true}, func(t *testing.T, w *waitLine) {
		boom := errors.New("boom")
		first, leaveFirst := context.WithCancelCause(t.Context())
		last, leaveLast := context.WithCancelCause(t.Context())
		w.come(t.Context(), 0, 4)
		w.come(first, 1, 4)
		w.come(t.Context(), 2, 1)
		w.come(last, 3, 1)
		leaveLast(boom)
		leaveFirst(boom)
		require.ElementsMatch(t, []pass{{3, 0, boom}, {1, 0, boom}, {0, 0, nil}, {2, 0, nil}}, w.after(time.Millisecond),
			"2 passes as soon as 1 leaves, who alone had to wait")
		res, err := w.spy.Do(t.Context(), []ratelimit.Op{{Rule: w.rule, Key: "k", Kind: ratelimit.Count}})
		require.NoError(t, err)
		require.EqualValues(t, 5, res[0].Count)
	})
}

func TestAWaitThatCannotEndInTimeFailsAtOnce(t *testing.T) {
	inLine(t, fixed(1, time.Second), QueueOptions{}, func(t *testing.T, w *waitLine) {
		soon, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		w.come(t.Context(), 0, 1)
		w.come(soon, 1, 1) // until 1 s
		w.come(soon, 2, 1) // until 2 s
		w.come(soon, 3, 1) // until 3 s
		w.come(t.Context(), 4, 1)
		now := w.after(0)
		require.Len(t, now, 2)
		require.Equal(t, 3, now[1].id)
		require.ErrorIs(t, now[1].err, ErrWaitTooLong)
		var denied *ratelimit.DeniedError
		require.ErrorAs(t, now[1].err, &denied)
		require.Equal(t, ratelimit.DeniedError{Limit: 1, RetryAfter: 3 * time.Second}, *denied)
		require.Equal(t, []pass{{1, time.Second, nil}, {2, 2 * time.Second, nil}}, w.after(2100*time.Millisecond))
		later, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		w.come(later, 5, 1) // those who have passed don't count any more
		require.Equal(t, []pass{{4, 3 * time.Second, nil}, {5, 4 * time.Second, nil}}, w.after(5*time.Second))
	})
	inLine(t, fixed(1, time.Second), QueueOptions{}, func(t *testing.T, w *waitLine) {
		soon, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		w.come(t.Context(), 0, 1)
		w.come(soon, 1, 1)
		done := w.after(0)
		require.Len(t, done, 2, "the first in line, too")
		require.ErrorIs(t, done[1].err, ErrWaitTooLong)
	})
}

func TestAQueueIsBounded(t *testing.T) {
	inLine(t, fixed(1, time.Second), QueueOptions{MaxWaiting: 2}, func(t *testing.T, w *waitLine) {
		for id := range 4 {
			w.come(t.Context(), id, 1)
		}
		now := w.after(0)
		require.Len(t, now, 2)
		require.ErrorIs(t, now[1].err, ErrTooManyWaiting)
		var denied *ratelimit.DeniedError
		require.ErrorAs(t, now[1].err, &denied)
		require.Equal(t, 3*time.Second, denied.RetryAfter)
		_, err := w.Wait(t.Context(), "another", 1)
		require.NoError(t, err, "by key")
		require.Len(t, w.after(5*time.Second), 2)
	})
}

func TestAQueueIsClosed(t *testing.T) {
	inLine(t, fixed(1, time.Second), QueueOptions{}, func(t *testing.T, w *waitLine) {
		for id := range 3 {
			w.come(t.Context(), id, 1)
		}
		require.NoError(t, w.Close())
		require.NoError(t, w.Close())
		w.come(t.Context(), 3, 1)
		require.ElementsMatch(t, []pass{{0, 0, nil}, {1, 0, ErrQueueClosed}, {2, 0, ErrQueueClosed}, {3, 0, ErrQueueClosed}}, w.after(0))
	})
}

func TestAStoreThatFailsFailsTheLine(t *testing.T) {
	inLine(t, fixed(5, time.Second), QueueOptions{}, func(t *testing.T, w *waitLine) {
		w.spy.hold = make(chan struct{})
		w.spy.first = func(context.Context) error { return ratelimit.ErrStore }
		for id := range 3 {
			w.come(t.Context(), id, 1)
		}
		w.spy.hold <- struct{}{}
		require.ElementsMatch(t, []pass{{0, 0, ratelimit.ErrStore}, {1, 0, ratelimit.ErrStore}, {2, 0, ratelimit.ErrStore}}, w.after(0))
		require.Len(t, w.spy.hows(), 1)

		boom := errors.New("boom")
		w.spy.first = func(context.Context) error { return boom } // of this op, as it seems
		w.come(t.Context(), 3, 1)
		w.come(t.Context(), 4, 1)
		w.spy.hold <- struct{}{}
		require.Equal(t, []pass{{3, 0, boom}}, w.after(0))
		w.spy.first = nil
		w.spy.hold <- struct{}{}
		require.Equal(t, []pass{{4, 0, nil}}, w.after(0))
	})
}

func TestWhoLeavesTheStoreFailsNobodyElse(t *testing.T) {
	inLine(t, fixed(5, time.Second), QueueOptions{}, func(t *testing.T, w *waitLine) {
		w.spy.first = func(ctx context.Context) error {
			if ctx.Done() == nil {
				return nil
			}
			<-ctx.Done()
			return fmt.Errorf("%w: %w", ratelimit.ErrStore, ctx.Err())
		}
		ctx, leave := context.WithCancel(context.Background())
		w.come(ctx, 0, 1)
		w.come(context.Background(), 1, 1)
		leave()
		done := w.after(0)
		require.Len(t, done, 2)
		for _, p := range done {
			require.Equal(t, p.id == 0, p.err != nil, "%v", p)
		}
	})
}

// hasty denies and says that one may ask again at once.
type hasty struct {
	ratelimit.Store
	denials int
}

func (h *hasty) Do(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
	h.denials--
	return []ratelimit.Result{{Limit: 5, Allowed: h.denials < 0}}, nil
}

func TestAQueueDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := NewQueue(&hasty{denials: 5}, fixed(5, time.Second), QueueOptions{})
		require.NoError(t, err)
		began := time.Now()
		_, err = q.Wait(t.Context(), "k", 1)
		require.NoError(t, err)
		require.Equal(t, 5*time.Millisecond, time.Since(began))
	})
}

func TestAStoreThatPanicsGivesTheTurnOn(t *testing.T) {
	inLine(t, fixed(5, time.Second), QueueOptions{}, func(t *testing.T, w *waitLine) {
		w.spy.hold = make(chan struct{})
		w.spy.first = func(context.Context) error { panic("boom") }
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = w.Wait(t.Context(), "k", 1)
		}()
		synctest.Wait()
		w.come(t.Context(), 1, 1)
		w.spy.hold <- struct{}{}
		require.Equal(t, "boom", <-panicked)
		synctest.Wait()
		w.spy.first = nil
		w.spy.hold <- struct{}{}
		require.Equal(t, []pass{{1, 0, nil}}, w.after(0))
	})
}

func TestAStoreThatHangsKeepsNobodyElse(t *testing.T) {
	inLine(t, fixed(5, time.Second), QueueOptions{}, func(t *testing.T, w *waitLine) {
		w.spy.hold = make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		w.come(t.Context(), 0, 1)
		w.come(ctx, 1, 1)
		leave()
		require.Equal(t, []pass{{1, 0, context.Canceled}}, w.after(0))
		require.NoError(t, w.Close())
		w.spy.hold <- struct{}{}
		require.Equal(t, []pass{{0, 0, nil}}, w.after(0), "who was being answered")
	})
}

// listed is a store that denies as a deny list does.
type listed struct{ ratelimit.Store }

func (listed) Do(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
	return []ratelimit.Result{{Limit: 5, Source: ratelimit.FromDenyList}}, nil
}

func TestNobodyWaitsForADenyList(t *testing.T) {
	q, err := NewQueue(listed{}, fixed(5, time.Second), QueueOptions{})
	require.NoError(t, err)
	_, err = q.Wait(t.Context(), "k", 1)
	var denied *ratelimit.DeniedError
	require.ErrorAs(t, err, &denied)
}

func TestWhatAQueueRefuses(t *testing.T) {
	memory, _ := newMemory(t)
	q, err := NewQueue(memory, fixed(5, time.Second), QueueOptions{})
	require.NoError(t, err)
	_, err = q.Wait(t.Context(), "k", 6)
	require.ErrorIs(t, err, ratelimit.ErrTooLarge)
	_, err = q.Wait(t.Context(), "k", 0)
	require.ErrorIs(t, err, ratelimit.ErrOp)
	boom := errors.New("boom")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(boom)
	_, err = q.Wait(ctx, "k", 1)
	require.ErrorIs(t, err, boom)
	require.Zero(t, memory.Len())

	counts := ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{}))
	for want, make := range map[string]func() (*Queue, error){
		"store is nil":                   func() (*Queue, error) { return NewQueue(nil, q.rule, QueueOptions{}) },
		"no rule has no limit":           func() (*Queue, error) { return NewQueue(memory, ratelimit.Rule{}, QueueOptions{}) },
		"(no limit) has no limit":        func() (*Queue, error) { return NewQueue(memory, counts, QueueOptions{}) },
		"QueueOptions.MaxWaiting is -1,": func() (*Queue, error) { return NewQueue(memory, q.rule, QueueOptions{MaxWaiting: -1}) },
	} {
		_, err := make()
		require.ErrorContains(t, err, want)
	}
}

// TestQueuesOfRandomCallers has callers of random sizes come and leave, and checks that
// those who pass do so in the order in which they came, and that only they are charged.
func TestQueuesOfRandomCallers(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		rule := []ratelimit.Rule{
			fixed(10, time.Second), evenly(10, time.Second), gcra(600),
			ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 10, Per: time.Second})),
		}[seed%4]
		inLine(t, rule, QueueOptions{Bursts: random.IntN(2) == 0}, func(t *testing.T, w *waitLine) {
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
				w.come(ctx, id, want[id])
				<-time.After(time.Duration(random.IntN(100)) * time.Millisecond)
			}
			done := w.after(10 * time.Minute)
			slices.SortFunc(done, func(a, b pass) int { // of one moment, they returned in any order
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
			for _, res := range w.spy.order {
				charged -= res.Receipt.N
			}
			require.Zero(t, charged)
		})
	}
}
