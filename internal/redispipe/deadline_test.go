package redispipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

const timeout = 100 * time.Millisecond

// slowest makes calls at once, and returns how long the slowest took from its own start. Each must
// fail as not sent or without a reply.
func slowest(t *testing.T, callers int, call func() error) time.Duration {
	t.Helper()
	var longest atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			began := time.Now()
			err := call()
			took := int64(time.Since(began))
			for {
				l := longest.Load()
				if took <= l || longest.CompareAndSwap(l, took) {
					break
				}
			}
			if !errors.Is(err, ErrNotSent) && !errors.Is(err, ErrNoReply) {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	return time.Duration(longest.Load())
}

// requireInTime checks that calls fail in time, all of them, once in a few tries.
func requireInTime(t *testing.T, callers int, call func() error) {
	t.Helper()
	bestOf(t, 10, func() bool {
		took := slowest(t, callers, call)
		t.Logf("%d callers: %v", callers, took)
		return took < timeout+50*time.Millisecond
	})
}

func TestHangingServer(t *testing.T) {
	t.Parallel()
	s := testhost.StartRedis(t)
	p := newPipe(t, s.Client(nil))
	load(t, p, incr)
	cancellable, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": cancellable} {
		t.Run(name, func(t *testing.T) {
			resume := s.Pause()
			defer resume()
			for _, callers := range []int{1, 2000} {
				requireInTime(t, callers, func() error { return run(ctx, p, timeout, "n", 1) })
			}
			requireInTime(t, 1, func() error {
				var err error
				for _, r := range p.RunAll(ctx, timeout, []Call{add("n", 1), add("m", 1)}) {
					err = errors.Join(err, r.Err)
				}
				return err
			})
			resume()
			began := time.Now()
			require.Eventually(t, func() bool { return run(ctx, p, timeout, "n", 0) == nil }, time.Second, 5*time.Millisecond)
			t.Logf("back after %v", time.Since(began))
		})
	}
	requireIdle(t, p)
}

// TestTimeoutsOfCalls checks that a caller in a hurry doesn't wait for the deadline of others.
func TestTimeoutsOfCalls(t *testing.T) {
	s := testhost.StartRedis(t)
	p := newPipe(t, s.Client(nil))
	load(t, p, incr)
	farAway(p)
	resume := s.Pause()
	defer resume()
	ctx, cancel := context.WithCancel(t.Context())
	var patient sync.WaitGroup
	for i := range maxInFlight {
		patient.Go(func() { _ = run(ctx, p, long, "n", 1) })
		eventually(t, "a place is taken", func() bool {
			p.single.mu.Lock()
			defer p.single.mu.Unlock()
			return p.single.inFlight == i+1 && len(p.single.calls) == 0
		})
	}
	requireInTime(t, 100, func() error { return run(t.Context(), p, timeout, "n", 1) })
	resume()
	patient.Wait()
	cancel()
}

// TestContextDeadlineIsItsOwnError checks that the end of a caller's context isn't taken for a
// failure of Redis.
func TestContextDeadlineIsItsOwnError(t *testing.T) {
	s := testhost.StartRedis(t)
	p := newPipe(t, s.Client(nil))
	load(t, p, incr)
	resume := s.Pause()
	defer resume()
	own := errors.New("own")
	for _, callers := range []int{1, 1, 1, 1, 1, 300} {
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				ctx, cancel := context.WithTimeoutCause(t.Context(), timeout/2, own)
				defer cancel()
				if err := run(ctx, p, long, "n", 1); err != own || ctx.Err() == nil {
					t.Errorf("%d callers: %v", callers, err)
				}
			})
		}
		wg.Wait()
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), timeout/2, own)
	defer cancel()
	for _, r := range p.RunAll(ctx, long, []Call{add("n", 1), add("n", 1)}) {
		require.Equal(t, own, r.Err)
	}
}

func TestPoolExhausted(t *testing.T) {
	s := testhost.StartRedis(t)
	c := s.Client(func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize, o.MaxActiveConns = 1, -1, 1 })
	p := newPipe(t, c)
	load(t, p, incr)
	popped := make(chan error)
	go func() { popped <- c.BLPop(t.Context(), 0, "list").Err() }()
	eventually(t, "the connection is busy", func() bool { return c.PoolStats().IdleConns == 0 })
	bestOf(t, 10, func() bool {
		began := time.Now()
		require.ErrorIs(t, run(t.Context(), p, timeout, "n", 1), ErrNotSent)
		return inTime(began, timeout)
	})
	requireInTime(t, 50, func() error { return run(t.Context(), p, timeout, "n", 1) })
	require.NoError(t, s.Client(nil).LPush(t.Context(), "list", 1).Err())
	require.NoError(t, <-popped)
	require.NoError(t, run(t.Context(), p, long, "n", 1))
	require.Equal(t, 1, value(t, c, "n"))
}

func TestHangingDialer(t *testing.T) {
	end := make(chan struct{})
	c := client(t, "nowhere:1", func(o *redis.Options) {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			<-end
			return nil, errors.New("the end")
		}
	})
	defer close(end)
	p := newPipe(t, c)
	bestOf(t, 10, func() bool {
		began := time.Now()
		require.ErrorIs(t, run(t.Context(), p, timeout, "n", 1), ErrNotSent)
		return inTime(began, timeout)
	})
	requireInTime(t, 100, func() error { return run(t.Context(), p, timeout, "n", 1) })
}

func TestSilentServer(t *testing.T) {
	p := newPipe(t, client(t, silent(t), nil))
	for _, callers := range []int{1, 100} {
		requireInTime(t, callers, func() error { return run(t.Context(), p, timeout, "n", 1) })
	}
}

func TestServerIsDown(t *testing.T) {
	s := testhost.StartRedis(t)
	s.Stop()
	p := newPipe(t, s.Client(nil))
	requireInTime(t, 1, func() error {
		err := run(t.Context(), p, timeout, "n", 1)
		require.ErrorIs(t, err, ErrNotSent)
		require.NotErrorIs(t, err, ErrNoReply)
		return err
	})
	requireInTime(t, 100, func() error { return run(t.Context(), p, timeout, "n", 1) })
	s.Restart()
	eventually(t, "it is back", func() bool { return run(t.Context(), p, timeout, "n", 0) == nil })
}

// TestClusterWithoutSlots has clients that know no node which answers.
func TestClusterWithoutSlots(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"silent": silent(t), "refused": "127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, DisableIdentity: true})
			defer c.Close()
			p := newPipe(t, c)
			for _, callers := range []int{1, 200} { // the first call ever, too
				requireInTime(t, callers, func() error {
					err := run(context.Background(), p, timeout, "n", 1)
					if errors.Is(err, ErrNoReply) {
						t.Errorf("it was not sent: %v", err)
					}
					return err
				})
			}
			var calls []Call
			for i := range 5 {
				calls = append(calls, add(fmt.Sprint("k", i), 1))
			}
			requireInTime(t, 1, func() error {
				var err error
				for _, r := range p.RunAll(context.Background(), timeout, calls) {
					err = errors.Join(err, r.Err)
				}
				return err
			})
			own := errors.New("own")
			ctx, cancel := context.WithTimeoutCause(t.Context(), timeout/4, own)
			defer cancel()
			if name == "silent" {
				require.Equal(t, own, run(ctx, p, long, "n", 1))
			}
		})
	}
}
