package redisstore

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/faultproxy"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestLostReplyChargesOnce ends the connection in the middle of the reply to
// a take that was charged.
func TestLostReplyChargesOnce(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	direct := newLimiter(t, newStore(t, server.Client(nil), patient), perMinute(1000))
	client, proxy := faultproxy.NewClient(t, server)
	l := newLimiter(t, newStore(t, client, patient), perMinute(1000))
	recovers(t, l)
	for i, lose := range []func(int){proxy.CutAfter, proxy.ResetAfter} {
		for after := range 8 {
			before, err := direct.Count(t.Context(), "k", 0)
			require.NoError(t, err)
			lose(after)
			_, err = l.Take(t.Context(), "k", 1)
			require.ErrorIs(t, err, ratelimit.ErrStore, "%d %d", i, after)
			require.NoError(t, proxy.Restore())
			n, err := direct.Count(t.Context(), "k", 0)
			require.NoError(t, err)
			require.Equal(t, before+1, n, "%d %d", i, after)
			recovers(t, l)
		}
	}
}

// TestFaultsNeverChargeTwice has callers while all kinds of faults come and go.
func TestFaultsNeverChargeTwice(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	direct := newLimiter(t, newStore(t, server.Client(nil), patient), perMinute(1<<40))
	client, proxy := faultproxy.NewClient(t, server)
	l := newLimiter(t, newStore(t, client, Options{Timeout: 50 * time.Millisecond}), perMinute(1<<40))
	var acked, failed atomic.Int64
	load := calling(t, 32, func() {
		switch _, err := l.Take(t.Context(), "k", 1); {
		case err == nil:
			acked.Add(1)
		case errors.Is(err, ratelimit.ErrStore):
			failed.Add(1)
		default:
			t.Error(err)
		}
	})
	faults := []func(){
		proxy.Cut, proxy.Reset, proxy.Stall,
		func() { proxy.CutAfter(rand.IntN(2000)) },
		func() { proxy.ResetAfter(rand.IntN(2000)) },
		func() { proxy.Delay(20*time.Millisecond, 80*time.Millisecond) },
		func() { defer server.Pause()(); <-time.After(60 * time.Millisecond) },
	}
	late := 0
	for i := range 4 * len(faults) {
		before := acked.Load()
		faults[i%len(faults)]()
		<-time.After(time.Duration(rand.IntN(70)) * time.Millisecond)
		require.NoError(t, proxy.Restore())
		began := time.Now()
		require.Eventually(t, func() bool { return acked.Load() > before }, 20*time.Second, time.Millisecond, "back")
		if time.Since(began) > time.Second { // the machine may be busy
			late++
		}
	}
	load.end()
	require.Less(t, late, len(faults), "back within a second, mostly")
	n, err := direct.Count(t.Context(), "k", 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, acked.Load())
	require.LessOrEqual(t, n, acked.Load()+failed.Load())
	require.NotZero(t, failed.Load())
	t.Logf("%d acknowledged, %d failed, %d counted", acked.Load(), failed.Load(), n)
}

// TestSilentRedisTimesOut checks the deadline on open connections and on new connections.
func TestSilentRedisTimesOut(t *testing.T) {
	t.Parallel()
	const timeout = 80 * time.Millisecond
	server := testhost.StartRedis(t)
	for name, silence := range map[string]func(*faultproxy.Proxy){
		"late replies":  func(p *faultproxy.Proxy) { p.Delay(0, 20*timeout) },
		"late requests": func(p *faultproxy.Proxy) { p.Delay(20*timeout, 0) },
		"stalled":       (*faultproxy.Proxy).Stall,
	} {
		for _, warm := range []bool{true, false} {
			client, proxy := faultproxy.NewClient(t, server)
			l := newLimiter(t, newStore(t, client, Options{Timeout: timeout}), perMinute(1<<40))
			if warm {
				recovers(t, l)
			}
			silence(proxy)
			best := time.Hour // the machine may be busy
			for range 10 {
				began := time.Now()
				_, err := l.Take(t.Context(), "k", 1)
				took := time.Since(began)
				require.ErrorIs(t, err, ratelimit.ErrStore, name)
				require.GreaterOrEqual(t, took, timeout, "it was waited for")
				if best = min(best, took); best <= timeout+50*time.Millisecond {
					break
				}
			}
			require.LessOrEqual(t, best, timeout+50*time.Millisecond, "%s, warm: %v", name, warm)
			require.NoError(t, proxy.Restore())
			recovers(t, l)
		}
	}
}

func TestRefusedConnectionFailsAtOnce(t *testing.T) {
	t.Parallel()
	const timeout = 80 * time.Millisecond
	client, proxy := faultproxy.NewClient(t, testhost.StartRedis(t))
	l := newLimiter(t, newStore(t, client, Options{Timeout: timeout}), perMinute(1<<40))
	recovers(t, l)
	for range 2 {
		proxy.Cut()
		best := time.Hour
		for range 3 {
			began := time.Now()
			_, err := l.Take(t.Context(), "k", 1)
			require.ErrorIs(t, err, ratelimit.ErrStore)
			best = min(best, time.Since(began))
		}
		require.LessOrEqual(t, best, timeout+50*time.Millisecond)
		require.NoError(t, proxy.Restore())
		recovers(t, l)
	}
}

// TestRedisCrash restarts a Redis with its data and without.
func TestRedisCrash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want int64
	}{{testhost.Durable, 3}, {nil, 0}} {
		server := testhost.StartRedis(t, tt.args...)
		l := newLimiter(t, newStore(t, server.Client(nil), Options{}), perMinute(1000))
		_, err := l.Take(t.Context(), "k", 3)
		require.NoError(t, err)
		server.Kill()
		_, err = l.Take(t.Context(), "k", 1)
		require.ErrorIs(t, err, ratelimit.ErrStore)
		server.Restart()
		require.Eventually(t, func() bool {
			n, err := l.Count(t.Context(), "k", 0)
			return err == nil && n == tt.want
		}, time.Second, 10*time.Millisecond)
	}
}
