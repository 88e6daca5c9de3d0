package redisstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/faultproxy"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session/redisstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

// TestLostReplyIsAnError cuts the connection while Redis replies to a Commit. The Commit must not be sent again.
func TestLostReplyIsAnError(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	direct := newStore(t, server.Client(nil), patient)
	client, proxy := faultproxy.NewClient(t, server)
	s := newStore(t, client, patient)
	for _, lose := range []func(int){proxy.CutAfter, proxy.ResetAfter} {
		for after := range 3 {
			recovers(t, s)
			lost := func(operation func() error) {
				t.Helper()
				recovers(t, s) // loads the scripts and opens a connection
				lose(after)
				err := operation()
				require.ErrorContains(t, err, "store unavailable: ")
				for _, answer := range []error{storage.ErrNotFound, storage.ErrGone, storage.ErrExists, storage.ErrTooLarge} {
					require.NotErrorIs(t, err, answer, "as if it had been sent again")
				}
				require.NoError(t, proxy.Restore())
			}
			v, old := newVisitor(), newVisitor().created(t, direct, "user", "ada")
			create := v.delta("user", "ada")
			create.Create = true
			lost(func() error { return s.Commit(t.Context(), create) })
			lost(func() error { return s.Commit(t.Context(), v.delta("cart", "3")) })
			rec := must(direct.Load(t.Context(), v.locator, v.digest, limits))
			require.Equal(t, map[string][]byte{"user": []byte("ada"), "cart": []byte("3")}, rec.Fields)
			require.NoError(t, direct.Destroy(t.Context(), old.locator, old.digest))
			recovers(t, s)
			require.NoError(t, s.Destroy(t.Context(), v.locator, v.digest))
			require.Zero(t, server.Client(nil).Exists(t.Context(), v.key()).Val())
		}
	}
}

// TestFaultsLoseNoAcknowledgedWrite writes to a session during all kinds of faults. Then it destroys the session during a
// fault. Late writes must not bring the session back.
func TestFaultsLoseNoAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	direct := newStore(t, server.Client(nil), patient)
	client, proxy := faultproxy.NewClient(t, server)
	s := newStore(t, client, redisstore.Options{Timeout: 50 * time.Millisecond})
	v := newVisitor().created(t, direct)
	gone := make(chan struct{})
	unavailable := func(err error) bool {
		select {
		case <-gone:
			return true // even for ErrGone
		default:
			return !errors.Is(err, storage.ErrGone)
		}
	}
	faults := []func(){
		proxy.Cut, proxy.Reset, proxy.Stall,
		func() { proxy.CutAfter(rand.IntN(500)) },
		func() { proxy.ResetAfter(rand.IntN(500)) },
		func() { proxy.Delay(20*time.Millisecond, 80*time.Millisecond) },
		func() { defer server.Pause()(); <-time.After(60 * time.Millisecond) },
	}
	w := write(t, s, v, 32, unavailable)
	for i := range 4 * len(faults) {
		faults[i%len(faults)]()
		<-time.After(time.Duration(rand.IntN(70)) * time.Millisecond)
		require.NoError(t, proxy.Restore())
		w.writeMore(t, 32, 10*time.Second)
	}
	w.end()
	w.check(t, direct, v)
	require.NotZero(t, w.failed.Load())
	t.Logf("%d acknowledged, %d failed", w.total.Load(), w.failed.Load())

	w = write(t, s, v, 32, unavailable)
	w.writeMore(t, 32, 10*time.Second)
	proxy.Stall() // while writes are in flight
	<-time.After(10 * time.Millisecond)
	close(gone)
	require.NoError(t, direct.Destroy(t.Context(), v.locator, v.digest))
	require.NoError(t, proxy.Restore())
	failed := w.failed.Load()
	require.Eventually(t, func() bool { return w.failed.Load() > failed+320 }, 20*time.Second, time.Millisecond)
	w.end()
	require.Zero(t, server.Client(nil).Exists(t.Context(), v.key()).Val(), "revived")
}

// takes fails unless run returns an error after timeout, and at most 50 ms later. It tries up to five times, because the
// machine may be busy.
func takes(t *testing.T, timeout time.Duration, run func() error, name ...any) {
	t.Helper()
	best := time.Hour
	for range 5 {
		began := time.Now()
		err := run()
		best = min(best, time.Since(began))
		require.ErrorContains(t, err, "store unavailable: ", name...)
		if best <= timeout+50*time.Millisecond {
			break
		}
	}
	require.GreaterOrEqual(t, best, timeout-time.Millisecond, "it was waited for")
	require.LessOrEqual(t, best, timeout+50*time.Millisecond, name...)
}

func TestEveryOperationHasADeadline(t *testing.T) {
	t.Parallel()
	const timeout = 50 * time.Millisecond
	server := testhost.StartRedis(t)
	for name, silence := range map[string]func(*faultproxy.Proxy) (end func()){
		"late replies":  func(p *faultproxy.Proxy) func() { p.Delay(0, 3*timeout); return func() {} },
		"late requests": func(p *faultproxy.Proxy) func() { p.Delay(3*timeout, 0); return func() {} },
		"stalled":       func(p *faultproxy.Proxy) func() { p.Stall(); return func() {} },
		"paused":        func(*faultproxy.Proxy) func() { return server.Pause() },
	} {
		client, proxy := faultproxy.NewClient(t, server)
		s := newStore(t, client, redisstore.Options{Timeout: timeout})
		for what, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": t.Context()} {
			for _, o := range slices.Concat(onSessions, onUsers) {
				recovers(t, s) // opens a connection
				end := silence(proxy)
				takes(t, timeout, func() error { return o.run(ctx, s, newVisitor()) }, "%s: %s, %s", name, o.name, what)
				end()
				require.NoError(t, proxy.Restore())
			}
		}
		recovers(t, s)
	}
}

// TestTimeoutCoversAllCalls checks operations that make two calls, each of which takes most of the timeout.
func TestTimeoutCoversAllCalls(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	server := testhost.StartRedis(t)
	direct := newStore(t, server.Client(nil), patient)
	for range 3 {
		newVisitor().loggedIn(t, direct, "s3cret-user", limits)
	}
	client, proxy := faultproxy.NewClient(t, server)
	s := newStore(t, client, redisstore.Options{Timeout: timeout})
	recovers(t, s)
	proxy.Delay(0, 150*time.Millisecond)
	for _, o := range onUsers {
		if o.name != "revoke" { // makes only one call
			takes(t, timeout, func() error { return o.run(t.Context(), s, newVisitor()) }, o.name)
		}
	}
}

// TestSessionsAfterACrash crashes a Redis that keeps its data, and later deletes the data.
func TestSessionsAfterACrash(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t, testhost.Durable...)
	s := newStore(t, server.Client(nil), patient)
	v := newVisitor().created(t, s, "user", "ada")
	ended := newVisitor().created(t, s, "user", "bob")
	require.NoError(t, s.Destroy(t.Context(), ended.locator, ended.digest))
	load := func(v visitor) error {
		_, err := s.Load(t.Context(), v.locator, v.digest, limits)
		return err
	}
	server.Kill()
	require.Error(t, load(v))
	server.Restart()
	require.Eventually(t, func() bool { return load(v) == nil }, 20*time.Second, 10*time.Millisecond)
	require.ErrorIs(t, load(ended), storage.ErrNotFound)
	require.NoError(t, server.Client(nil).FlushAll(t.Context()).Err())
	require.Eventually(t, func() bool { return errors.Is(load(v), storage.ErrNotFound) }, 20*time.Second, 10*time.Millisecond)
}
