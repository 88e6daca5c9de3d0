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

// requireInTime checks that concurrent calls fail with ErrNotSent or ErrNoReply, and that in one of ten tries all of them do
// so soon after the timeout.
func requireInTime(t *testing.T, callers int, call func() error) {
	t.Helper()
	bestOf(t, 10, func() bool {
		var late atomic.Bool
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				began := time.Now()
				err := call()
				if !inTime(began, timeout) {
					late.Store(true)
				}
				if !errors.Is(err, ErrNotSent) && !errors.Is(err, ErrNoReply) {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		return !late.Load()
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
			require.Eventually(t, func() bool { return run(ctx, p, timeout, "n", 0) == nil }, time.Second, 5*time.Millisecond)
		})
	}
	requireIdle(t, p)
}

// TestContextDeadlineIsItsOwnError checks that a call returns the cause of its context's end instead of an error of Redis.
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

// TestClusterWithoutSlots makes calls with a client whose only node does not reply.
func TestClusterWithoutSlots(t *testing.T) {
	t.Parallel()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{silent(t)}, DisableIdentity: true})
	defer c.Close()
	p := newPipe(t, c)
	for _, callers := range []int{1, 200} {
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
