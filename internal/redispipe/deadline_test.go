package redispipe

import (
	"context"
	"errors"
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

// TestClusterWithoutSlots has a client whose only node does not answer.
func TestClusterWithoutSlots(t *testing.T) {
	t.Parallel()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{silent(t)}, DisableIdentity: true})
	defer c.Close()
	p := newPipe(t, c)
	for _, callers := range []int{1, 200} { // the first call ever, too
		requireInTime(t, callers, func() error {
			err := p.RunAll(context.Background(), timeout, []Call{add("n", 1)})[0].Err
			if errors.Is(err, ErrNoReply) {
				t.Errorf("it was not sent: %v", err)
			}
			return err
		})
	}
	own := errors.New("own")
	ctx, cancel := context.WithTimeoutCause(t.Context(), timeout/4, own)
	defer cancel()
	require.Equal(t, own, run(ctx, p, long, "n", 1))
}
