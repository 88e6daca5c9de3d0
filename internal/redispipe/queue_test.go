package redispipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestDefaultOptions uses a client with default options, which uses RESP3 and a handshake of several commands. Meanwhile, the
// application uses the client, too.
func TestDefaultOptions(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: testhost.StartRedis(t).Addr})
	defer c.Close()
	p := newPipe(t, c)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 20 {
				if err := run(t.Context(), p, long, "n", 1); err != nil {
					t.Error(err)
				}
				if r, err := p.Run(t.Context(), long, of(&counters, "m", int64(i))); err != nil || len(r.Ints) != 2 {
					t.Errorf("%v, %v", r, err)
				}
				if err := c.Incr(t.Context(), "n").Err(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 2*16*20, value(t, c, "n"))
	require.Equal(t, 16*190, value(t, c, "m"))
}

func TestRunAllReturnsResultsInOrder(t *testing.T) {
	s := testhost.StartRedis(t)
	p := newPipe(t, s.Client(nil))
	require.Empty(t, p.RunAll(t.Context(), long, nil))
	var calls []Call
	for i := range 600 { // more than one round trip
		calls = append(calls, add(fmt.Sprint("k", i), i))
	}
	calls[300].Script = fails
	for i, r := range p.RunAll(t.Context(), long, calls) {
		if i == 300 {
			require.ErrorContains(t, r.Err, ": NO not this")
			continue
		}
		require.NoError(t, r.Err)
		require.Equal(t, []any{int64(i)}, r.Values)
	}
}

func TestSingleCallIsSentByItsCaller(t *testing.T) {
	p := newPipe(t, testhost.StartRedis(t).Client(nil))
	var sender string
	p.single.client.AddHook(hook(func(_ []redis.Cmder, send func() error) error {
		sender = goroutine()
		return send()
	}))
	for range 10 {
		require.NoError(t, run(t.Context(), p, long, "n", 1))
		require.Equal(t, goroutine(), sender)
	}
}

// goroutine returns a string that identifies the current goroutine.
func goroutine() string {
	b := make([]byte, 64)
	head, _, _ := bytes.Cut(b[:runtime.Stack(b, false)], []byte("["))
	return string(head)
}

// countTrips counts the round trips of a pipe.
func countTrips(p *Pipe) *atomic.Int64 {
	trips := new(atomic.Int64)
	p.single.client.AddHook(hook(func(_ []redis.Cmder, send func() error) error {
		trips.Add(1)
		return send()
	}))
	return trips
}

func TestConcurrentCallsShareARoundTrip(t *testing.T) {
	p := newPipe(t, testhost.StartRedis(t).Client(nil))
	load(t, p, incr, get)
	trips := countTrips(p)
	bestOf(t, 100, func() bool {
		shared := 0
		for range 100 {
			trips.Store(0)
			var wg sync.WaitGroup
			wg.Go(func() { _ = run(t.Context(), p, long, "n", 1) })
			wg.Go(func() { _, _ = p.Run(t.Context(), long, Call{Script: get, Keys: []string{"n"}}) })
			wg.Wait()
			if trips.Load() == 1 {
				shared++
			}
		}
		t.Logf("%d of 100 shared a round trip", shared)
		return shared >= 95
	})
}

// TestMaxRoundTripsInFlight queues 600 calls while the maximum number of round trips is in flight.
func TestMaxRoundTripsInFlight(t *testing.T) {
	p := newPipe(t, testhost.StartRedis(t).Client(nil))
	load(t, p, incr)
	g := newGate(t, p)
	ended := g.fill(t, p)
	for i := range 600 {
		ended.Go(func() {
			if err := run(t.Context(), p, long, fmt.Sprint("k", i), 1); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all others are queued", func() bool { return p.single.len() == 600 })
	nothing(t, g.began)
	for _, size := range []int{maxCalls, maxCalls, 600 - 2*maxCalls} {
		g.pass <- struct{}{}
		require.Equal(t, size, receive(t, g.began))
		nothing(t, g.began)
	}
	for range maxInFlight {
		g.pass <- struct{}{}
	}
	ended.Wait()
	requireIdle(t, p)
}

// requireIdle waits until no calls are queued and no round trips are in flight.
func requireIdle(t *testing.T, p *Pipe) {
	t.Helper()
	requireFree(t, p.single)
}

func requireFree(t *testing.T, q *queue) {
	t.Helper()
	eventually(t, "no round trip is in flight", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.inFlight == 0 && len(q.calls) == 0
	})
}

func TestCallStartsRoundTripBelowMaximum(t *testing.T) {
	p := newPipe(t, testhost.StartRedis(t).Client(nil))
	load(t, p, incr)
	g := newGate(t, p)
	var calls []Call
	for range maxCalls + 10 { // two round trips
		calls = append(calls, add("n", 1))
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for _, r := range p.RunAll(t.Context(), long, calls) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
	})
	sizes := []int{receive(t, g.began), receive(t, g.began)}
	require.ElementsMatch(t, []int{maxCalls, 10}, sizes, "the second round trip does not wait for the first")
	ended.Go(func() {
		if err := run(t.Context(), p, long, "n", 1); err != nil {
			t.Error(err)
		}
	})
	require.Equal(t, 1, receive(t, g.began))
	for range 3 {
		g.pass <- struct{}{}
	}
	ended.Wait()
	requireIdle(t, p)
}

func TestCallerLeavesTheQueueAtOnce(t *testing.T) {
	s := testhost.StartRedis(t)
	c := s.Client(nil)
	p := newPipe(t, c)
	load(t, p, incr)
	g := newGate(t, p)
	ended := g.fill(t, p)

	left := errors.New("left")
	ctx, leave := context.WithCancelCause(t.Context())
	errs := make(chan error)
	go func() { errs <- run(ctx, p, long, "cancelled", 1) }()
	go func() { errs <- p.RunAll(ctx, long, []Call{add("cancelled", 1)})[0].Err }()
	eventually(t, "they are queued", func() bool { return p.single.len() == 2 })
	leave(left)
	require.Equal(t, left, receive(t, errs))
	require.Equal(t, left, receive(t, errs))

	began := time.Now()
	require.ErrorIs(t, run(t.Context(), p, 20*time.Millisecond, "late", 1), ErrNotSent)
	require.Less(t, time.Since(began), long/2)

	for range maxInFlight {
		g.pass <- struct{}{}
	}
	ended.Wait()
	requireIdle(t, p)
	require.Empty(t, g.began, "no round trip begins without callers")
	require.Zero(t, value(t, c, "cancelled"))
	require.Zero(t, value(t, c, "late"))
}

func TestCallerWhoseCallIsInFlightLeavesByTheDeadline(t *testing.T) {
	s := testhost.StartRedis(t)
	p := newPipe(t, s.Client(nil))
	load(t, p, incr)
	resume := s.Pause()
	defer resume()
	left := errors.New("left")
	ctx, leave := context.WithCancelCause(t.Context())
	errs := make(chan error)
	go func() { errs <- run(ctx, p, time.Second, "n", 1) }()
	go func() { errs <- p.RunAll(ctx, time.Second, []Call{add("n", 1)})[0].Err }()
	leave(left)
	require.Equal(t, left, receive(t, errs))
	require.Equal(t, left, receive(t, errs))
}

func TestCallWithEndedContextIsNotSent(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	p := newPipe(t, c)
	load(t, p, incr)
	own := errors.New("own")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(own)
	late, cancelLate := context.WithDeadlineCause(t.Context(), time.Now().Add(-time.Second), own)
	defer cancelLate()
	for _, ctx := range []context.Context{cancelled, late} {
		require.Equal(t, own, run(ctx, p, long, "n", 1))
		for _, r := range p.RunAll(ctx, long, []Call{add("n", 1), add("n", 1)}) {
			require.Equal(t, own, r.Err)
		}
	}
	for _, timeout := range []time.Duration{0, -time.Second} {
		require.ErrorIs(t, run(t.Context(), p, timeout, "n", 1), ErrNotSent)
	}
	requireIdle(t, p)
	require.Zero(t, value(t, c, "n"))
}

// TestRoundTripsToNearbyRedis checks when a round trip begins while another is in flight.
func TestRoundTripsToNearbyRedis(t *testing.T) {
	p := newPipe(t, testhost.StartRedis(t).Client(nil))
	load(t, p, incr)
	g := newGate(t, p)
	q := p.single
	near := func(load float64, began time.Time) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.rtt, q.load, q.began = 50*time.Microsecond, load, began
	}
	var ended sync.WaitGroup
	call := func(n int) {
		for range n {
			ended.Go(func() {
				if err := run(t.Context(), p, long, "n", 1); err != nil {
					t.Error(err)
				}
			})
		}
	}
	queued := func(n int) {
		t.Helper()
		eventually(t, "they are queued", func() bool { return q.len() == n })
		nothing(t, g.began)
	}
	young := time.Now().Add(time.Hour)
	call(1)
	require.Equal(t, 1, receive(t, g.began))
	near(8, young)
	call(3)
	queued(3)
	call(1)
	require.Equal(t, 4, receive(t, g.began), "half of the calls that are usually made at the same time")

	near(8, young)
	call(3)
	queued(3)
	g.pass <- struct{}{}
	queued(3) // another round trip is still in flight
	g.pass <- struct{}{}
	require.Equal(t, 3, receive(t, g.began), "the last round trip in flight is followed by another")

	near(8, time.Now().Add(-time.Second))
	call(1)
	require.Equal(t, 1, receive(t, g.began), "the newest is late")
	for range 2 {
		g.pass <- struct{}{}
	}
	ended.Wait()
	requireIdle(t, p)
}

// TestCallsJoinTheRoundTripThatIsAboutToBegin checks that no other round trip begins while one yields. Otherwise the yield
// would take too long and would be skipped next time.
func TestCallsJoinTheRoundTripThatIsAboutToBegin(t *testing.T) {
	q := newPipe(t, client(t, "127.0.0.1:1", nil)).single
	q.inFlight, q.load, q.yielding = 1, 1, true
	require.Nil(t, q.add(newCall(t.Context(), time.Now(), add("n", 1))))
	q.yielding = false
	require.Len(t, q.add(newCall(t.Context(), time.Now(), add("n", 1))), 2)
}

func TestLoadIsTheRecentMaximum(t *testing.T) {
	p := newPipe(t, testhost.StartRedis(t).Client(nil))
	q := p.single
	require.NoError(t, run(t.Context(), p, long, "n", 1))
	require.EqualValues(t, 1, q.load)
	for _, r := range p.RunAll(t.Context(), long, slices.Repeat([]Call{add("n", 1)}, 300)) {
		require.NoError(t, r.Err)
	}
	requireIdle(t, p)
	require.InDelta(t, 300, q.load, 20, "the sum of two round trips")
	for range 100 {
		require.NoError(t, run(t.Context(), p, long, "n", 1))
	}
	require.InDelta(t, 1, q.load, 0.5)
	require.Zero(t, q.sending)
}
