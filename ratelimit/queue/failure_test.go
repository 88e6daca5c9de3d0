package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

func TestStoreErrorFailsTheLine(t *testing.T) {
	withQueue(t, window(5, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		w.spy.Hold = make(chan struct{})
		w.spy.Before = func(context.Context) error { return ratelimit.ErrStore }
		for id := range 3 {
			w.start(t.Context(), id, 1)
		}
		w.spy.Hold <- struct{}{}
		require.ElementsMatch(t, []outcome{{0, 0, ratelimit.ErrStore}, {1, 0, ratelimit.ErrStore}, {2, 0, ratelimit.ErrStore}}, w.advance(0))
		require.Len(t, w.spy.Drain(), 1)

		boom := errors.New("boom")
		w.spy.Before = func(context.Context) error { return boom } // not an error of the store, so it must not reach other callers
		w.start(t.Context(), 3, 1)
		w.start(t.Context(), 4, 1)
		w.spy.Hold <- struct{}{}
		require.Equal(t, []outcome{{3, 0, boom}}, w.advance(0))
		w.spy.Before = nil
		w.spy.Hold <- struct{}{}
		require.Equal(t, []outcome{{4, 0, nil}}, w.advance(0))
	})
}

func TestCancelledCallFailsOnlyItsCaller(t *testing.T) {
	withQueue(t, window(5, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		w.spy.Before = func(ctx context.Context) error {
			if ctx.Done() == nil {
				return nil
			}
			<-ctx.Done()
			return fmt.Errorf("%w: %w", ratelimit.ErrStore, ctx.Err())
		}
		ctx, leave := context.WithCancel(context.Background())
		w.start(ctx, 0, 1)
		w.start(context.Background(), 1, 1)
		leave()
		done := w.advance(0)
		require.Len(t, done, 2)
		for _, p := range done {
			require.Equal(t, p.id == 0, p.err != nil, "%v", p)
		}
	})
}

func TestDenialWithoutRetryAfterDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denials := 5
		q, err := New(storespy.Func(func(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
			denials--
			return []ratelimit.Result{{Limit: 5, Allowed: denials < 0}}, nil
		}), window(5, time.Second), Options{})
		require.NoError(t, err)
		began := time.Now()
		_, err = q.Wait(t.Context(), "k", 1)
		require.NoError(t, err)
		require.Equal(t, 5*time.Millisecond, time.Since(began))
	})
}

func TestPanicOfTheStoreWakesTheNext(t *testing.T) {
	withQueue(t, window(5, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		w.spy.Hold = make(chan struct{})
		w.spy.Before = func(context.Context) error { panic("boom") }
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = w.Wait(t.Context(), "k", 1)
		}()
		synctest.Wait()
		w.start(t.Context(), 1, 1)
		w.spy.Hold <- struct{}{}
		require.Equal(t, "boom", <-panicked)
		synctest.Wait()
		w.spy.Before = nil
		w.spy.Hold <- struct{}{}
		require.Equal(t, []outcome{{1, 0, nil}}, w.advance(0))
	})
}

func TestWaitersLeaveWhileTheStoreHangs(t *testing.T) {
	withQueue(t, window(5, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		w.spy.Hold = make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		w.start(t.Context(), 0, 1)
		w.start(ctx, 1, 1)
		leave()
		require.Equal(t, []outcome{{1, 0, context.Canceled}}, w.advance(0))
		w.spy.Hold <- struct{}{}
		require.Equal(t, []outcome{{0, 0, nil}}, w.advance(0))
	})
}

// TestDeniedCallerLeaves checks that the next caller waits for the RetryAfter of a denial, too, if it wants as many units.
func TestDeniedCallerLeaves(t *testing.T) {
	withQueue(t, window(1, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		ctx, leave := context.WithCancel(t.Context())
		w.start(t.Context(), 0, 1)
		w.start(ctx, 1, 1)
		w.start(t.Context(), 2, 1)
		leave()
		require.Equal(t, []outcome{{0, 0, nil}, {1, 0, context.Canceled}}, w.advance(0))
		require.Equal(t, []outcome{{2, time.Second, nil}}, w.advance(time.Second))
		require.Len(t, w.spy.Calls(), 3)
	})
}

// TestDenyListDenialIsReturnedAtOnce checks that no caller of a denied key waits, even if another caller waits before it.
func TestDenyListDenialIsReturnedAtOnce(t *testing.T) {
	withQueue(t, window(5, time.Second), Options{}, func(t *testing.T, w *queueTest) {
		w.spy.Hold = make(chan struct{})
		w.spy.Store = storespy.Func(func(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
			return []ratelimit.Result{{Limit: 5, Source: ratelimit.FromDenyList, RetryAfter: time.Hour}}, nil
		})
		w.start(t.Context(), 0, 1)
		w.start(t.Context(), 1, 1)
		close(w.spy.Hold)
		done := w.advance(0)
		require.Len(t, done, 2)
		for _, o := range done {
			require.ErrorAs(t, o.err, new(*ratelimit.DeniedError))
		}
	})
}

func TestInvalidArguments(t *testing.T) {
	memory, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	q, err := New(memory, window(5, time.Second), Options{})
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

	counter := ratelimit.Buckets(ratelimit.BucketOptions{})
	for want, make := range map[string]func() (*Queue, error){
		"store is nil":              func() (*Queue, error) { return New((*memstore.Store)(nil), q.rule, Options{}) },
		"Rule is the zero Rule":     func() (*Queue, error) { return New(memory, ratelimit.Rule{}, Options{}) },
		"(no limit) has no limit":   func() (*Queue, error) { return New(memory, counter, Options{}) },
		"Options.MaxWaiting is -1,": func() (*Queue, error) { return New(memory, q.rule, Options{MaxWaiting: -1}) },
		"Options.MaxWaiting is 9":   func() (*Queue, error) { return New(memory, q.rule, Options{MaxWaiting: math.MaxInt}) },
	} {
		_, err := make()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "queue: ")
	}
}
