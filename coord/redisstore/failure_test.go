package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/internal/faultproxy"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// secretRequest returns a request whose name must not appear in errors.
func secretRequest() coord.LeaseRequest {
	r := request(1)
	r.Name = "s3cret-name"
	return r
}

// operations has all operations, in an order in which each of them succeeds.
var operations = []struct {
	name string
	run  func(ctx context.Context, s *redisstore.Store) error
}{
	{"issue", func(ctx context.Context, s *redisstore.Store) error {
		return s.Issue(ctx, key(1), []byte("s3cret-metadata"), time.Minute, time.Minute)
	}},
	{"use", func(ctx context.Context, s *redisstore.Store) error { return second(s.Use(ctx, key(1), "s3cret-by")) }},
	{"inspect", func(ctx context.Context, s *redisstore.Store) error { return second(s.Inspect(ctx, key(1))) }},
	{"revoke", func(ctx context.Context, s *redisstore.Store) error { return s.Revoke(ctx, key(1)) }},
	{"acquire", func(ctx context.Context, s *redisstore.Store) error {
		return second(s.Acquire(ctx, "s3cret-user", secretRequest()))
	}},
	{"renew", func(ctx context.Context, s *redisstore.Store) error {
		return s.Renew(ctx, "s3cret-user", secretRequest())
	}},
	{"release", func(ctx context.Context, s *redisstore.Store) error {
		return s.Release(ctx, "s3cret-user", secretRequest())
	}},
}

// everything runs each operation once. It returns their errors by name.
func everything(ctx context.Context, s *redisstore.Store) map[string]error {
	errs := make(map[string]error)
	for _, o := range operations {
		errs[o.name] = o.run(ctx, s)
	}
	return errs
}

// answers has the errors that describe a token or a lease, and not a failure of the store.
var answers = []error{
	coord.ErrInvalid, coord.ErrExists, coord.ErrUnknown, coord.ErrUsed, coord.ErrExpired, coord.ErrRevoked,
	coord.ErrHeld, coord.ErrTooSoon, coord.ErrEnded, coord.ErrLost, coord.ErrReleased, coord.ErrMaxLifetime,
}

// fails fails the test unless every operation returns a failure of the store in time.
func fails(t *testing.T, s *redisstore.Store) map[string]error {
	t.Helper()
	began := time.Now()
	errs := everything(t.Context(), s)
	require.Less(t, time.Since(began), 2*time.Second)
	for name, err := range errs {
		require.ErrorIs(t, err, coord.ErrStore, name)
		for _, answer := range answers {
			require.NotErrorIs(t, err, answer, name)
		}
	}
	return errs
}

// recovers fails the test unless a token can be used and a lease can be acquired within a second.
func recovers(t *testing.T, s *redisstore.Store) {
	t.Helper()
	tokens, r := newTokens(t, s), request(9)
	require.Eventually(t, func() bool {
		id := coord.NewID()
		if tokens.Issue(t.Context(), id, nil, time.Minute) != nil {
			return false
		}
		if _, err := tokens.Use(t.Context(), id, ""); err != nil {
			return false
		}
		_, err := s.Acquire(t.Context(), id, r)
		return err == nil && s.Release(t.Context(), id, r) == nil
	}, time.Second, 10*time.Millisecond)
}

func TestRedisDownAndBack(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	server.Stop()
	s := newStore(t, server.Client(nil), redisstore.Options{Timeout: 100 * time.Millisecond})
	server.RestartTwice(func() { fails(t, s) }, func() { recovers(t, s) })
}

// TestOperationsEndInTime checks that each operation ends after the timeout if Redis hangs. The best of five tries
// counts, because the machine may be busy.
func TestOperationsEndInTime(t *testing.T) {
	t.Parallel()
	const timeout = 100 * time.Millisecond
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), redisstore.Options{Timeout: timeout})
	for what, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": t.Context()} {
		for _, o := range operations {
			best := time.Hour
			for try := 0; try < 5 && best > timeout+50*time.Millisecond; try++ {
				recovers(t, s)
				resume := server.Pause()
				began := time.Now()
				err := o.run(ctx, s)
				best = min(best, time.Since(began))
				resume()
				require.ErrorIs(t, err, coord.ErrStore)
				require.ErrorIs(t, err, redisstore.ErrNoReply)
				require.NotErrorIs(t, err, redisstore.ErrNotSent)
			}
			require.GreaterOrEqual(t, best, timeout-time.Millisecond, "it was waited for")
			require.LessOrEqual(t, best, timeout+50*time.Millisecond, "%s, %s", o.name, what)
		}
	}
}

func TestCallToDeadRedisIsNotSent(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	server.Stop()
	s := newStore(t, server.Client(nil), redisstore.Options{Timeout: 100 * time.Millisecond})
	for name, err := range fails(t, s) {
		require.ErrorIs(t, err, redisstore.ErrNotSent, name)
		require.NotErrorIs(t, err, redisstore.ErrNoReply, name)
	}
}

// TestLeaseEndsWithoutRedis checks that the contexts of two workers end at their deadlines if Redis fails, in four
// ways.
func TestLeaseEndsWithoutRedis(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*testhost.Redis, *faultproxy.Proxy){
		"dead":   func(s *testhost.Redis, _ *faultproxy.Proxy) { s.Kill() },
		"hangs":  func(s *testhost.Redis, _ *faultproxy.Proxy) { s.Pause() },
		"cut":    func(_ *testhost.Redis, p *faultproxy.Proxy) { p.Cut() },
		"silent": func(_ *testhost.Redis, p *faultproxy.Proxy) { p.Stall() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testhost.StartRedis(t)
			client, proxy := faultproxy.NewClient(t, server)
			l := newLeases(t, newStore(t, client, redisstore.Options{}), coord.LeaseOptions{Lifetime: 3 * time.Second, MaxLifetime: time.Hour})
			lease := acquired(t, l, "alone")
			err := l.Run(t.Context(), "u", func(ctx context.Context) error {
				pass(1500 * time.Millisecond) // in this time, Run renews its lease
				require.NoError(t, lease.Renew(ctx))
				fault(server, proxy)
				began := time.Now()
				<-ctx.Done()
				<-lease.Context().Done()
				require.WithinDuration(t, lease.Deadline(), time.Now(), time.Second)
				require.Less(t, time.Since(began), 4*time.Second)
				require.Greater(t, time.Since(began), 500*time.Millisecond, "not at once")
				require.ErrorIs(t, context.Cause(ctx), coord.ErrEnded)
				return nil
			})
			require.ErrorIs(t, err, coord.ErrEnded)
			require.ErrorIs(t, lease.Release(), coord.ErrStore)
		})
	}
}

// TestLostReply checks that a Use is not sent again, and that an Acquire is undone, if the connection ends during the
// reply.
func TestLostReply(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	direct := newTokens(t, newStore(t, server.Client(nil), patient))
	proxy := faultproxy.New(t, server.Addr)
	s := newStore(t, server.Client(func(o *redis.Options) {
		o.Addr, o.PoolSize = proxy.Addr, 1 // a second connection would end, too, and the call that releases the lease might use it
	}), patient)
	tokens := newTokens(t, s)
	for _, lose := range []func(int){proxy.CutAfter, proxy.ResetAfter} {
		for after := range 3 {
			id := coord.NewID()
			require.NoError(t, direct.Issue(t.Context(), id, nil, time.Minute))
			recovers(t, s)
			lose(after)
			_, err := tokens.Use(t.Context(), id, "this attempt")
			require.ErrorIs(t, err, coord.ErrStore)
			require.NotErrorIs(t, err, coord.ErrUsed, "as if it had been sent again")
			require.NoError(t, proxy.Restore())
			tok := must(direct.Inspect(t.Context(), id))
			require.Equal(t, "this attempt", tok.UsedBy)
		}
	}
	for after := range 3 { // the proxy accepts new connections, so the lease can be released
		recovers(t, s)
		proxy.ResetAfter(after)
		_, err := s.Acquire(t.Context(), "u", request(1))
		require.ErrorIs(t, err, coord.ErrStore)
		becomesFree(t, s)
	}
}

// becomesFree fails the test unless u's lease becomes free long before it expires.
func becomesFree(t *testing.T, s *redisstore.Store, what ...any) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := s.Acquire(t.Context(), "u", request(2))
		return err == nil && s.Release(t.Context(), "u", request(2)) == nil
	}, 10*time.Second, time.Millisecond, what...)
}

// TestCancelledAcquireHoldsNoLease checks that no lease stays if the context ends during an Acquire.
func TestCancelledAcquireHoldsNoLease(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	client, proxy := faultproxy.NewClient(t, server)
	s := newStore(t, client, patient)
	recovers(t, s)
	proxy.Delay(20*time.Millisecond, 20*time.Millisecond)
	for i := range 5 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(5+10*i)*time.Millisecond, errors.New("left"))
		_, err := s.Acquire(ctx, "u", request(1))
		cancel()
		if err == nil {
			require.NoError(t, s.Release(t.Context(), "u", request(1)))
			continue
		}
		require.ErrorContains(t, err, "left")
		becomesFree(t, s, "after %d ms", 5+10*i)
	}
}

func TestFullRedisChangesNothing(t *testing.T) {
	server := testhost.StartRedis(t)
	c := server.Client(nil)
	s := newStore(t, c, patient)
	r := request(1)
	require.NoError(t, s.Issue(t.Context(), key(1), nil, time.Minute, time.Minute))
	must(s.Acquire(t.Context(), "u", r))
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	for name, err := range map[string]error{
		"issue":   s.Issue(t.Context(), key(2), nil, time.Minute, time.Minute),
		"use":     second(s.Use(t.Context(), key(1), "")),
		"revoke":  s.Revoke(t.Context(), key(1)),
		"acquire": second(s.Acquire(t.Context(), "v", r)),
		"renew":   s.Renew(t.Context(), "u", r),
	} {
		require.ErrorIs(t, err, coord.ErrStore, name)
		require.ErrorContains(t, err, "OOM", name)
	}
	tok, err := s.Inspect(t.Context(), key(1))
	require.NoError(t, err, "what needs no memory goes on")
	require.Equal(t, coord.Usable, tok.State)
	require.NoError(t, s.Release(t.Context(), "u", r))
	require.Len(t, c.Keys(t.Context(), "*").Val(), 2)
}

func second[T any](_ T, err error) error { return err }
