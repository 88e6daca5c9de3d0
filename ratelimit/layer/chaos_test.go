package layer_test

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/internal/torture"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
)

var errStandIn = errors.New("answered without the store")

// TestRedisRestartsEverySecond has two processes take from a Redis that is killed and restarted
// with its data once a second. It checks that the takes that Redis allows keep the limit, that
// all others are answered in time, and that no goroutine is left.
func TestRedisRestartsEverySecond(t *testing.T) {
	length := testenv.Duration(t, 2*time.Second)
	const limit, per = 100, 300 * time.Millisecond
	for name, c := range map[string]struct {
		mode  layer.Mode
		rule  ratelimit.Rule
		check torture.Rule
	}{
		"window": {layer.Closed, windowOf(limit, per), torture.FixedWindow(limit, per)},
		"log": {
			layer.Open, ratelimit.SlidingLog(limit, per),
			torture.SlidingLog(limit, per),
		},
		"gcra": {
			layer.Local, ratelimit.GCRA(limit, per).WithBurst(20),
			torture.GCRA(limit, per, 20),
		},
	} {
		t.Run(name, func(t *testing.T) { chaos(t, c.mode, c.rule, c.check, length) })
	}
}

func chaos(t *testing.T, mode layer.Mode, rule ratelimit.Rule, check torture.Rule, length time.Duration) {
	var mu sync.Mutex
	var late []time.Duration // durations of answers without the store, in this process
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		select {
		case <-stop:
		default:
			close(stop)
		}
	})
	var s *layer.Store
	watch := testenv.WatchStalls(t, nil)
	takes := torture.Run(t, torture.Plan{
		Processes: 2, Goroutines: 16, Units: 3, For: length,
		Server: func() string {
			server := testhost.StartRedis(t, testhost.Durable...)
			go func() { defer close(stopped); killing(t, server, stop) }()
			return server.Addr
		},
		Taker: func(addr string) func(context.Context, int64) (bool, error) {
			client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
			t.Cleanup(func() { _ = client.Close() })
			s = newStack(t, client, layer.FailoverOptions{Mode: mode, Replicas: 2, Ratio: 0.02})
			l := limiter(t, s, rule)
			return func(ctx context.Context, n int64) (bool, error) {
				sent := time.Now()
				res, err := l.Take(ctx, "k", n)
				took := watch.Since(sent)
				if err == nil && res.Source != ratelimit.FromStore && !res.Allowed {
					<-time.After(2 * time.Millisecond) // limits the number of calls
				}
				if err == nil && res.Source != ratelimit.FromFailover {
					return res.Allowed, nil
				}
				mu.Lock()
				late = append(late, took)
				mu.Unlock()
				<-time.After(2 * time.Millisecond)
				return standIn(t, mode, res, err)
			}
		},
	})
	close(stop)
	<-stopped
	require.NoError(t, torture.Check(check, takes))

	allowed, failed := 0, 0
	for _, k := range takes {
		switch {
		case k.Failed:
			failed++
		case k.Allowed:
			allowed++
		}
	}
	slices.Sort(late)
	t.Logf("%d takes, %d allowed, %d without the store, 99%% of them within %v, all within %v; %+v",
		len(takes), allowed, failed, late[len(late)*99/100], late[len(late)-1], s.Stats().Failover)
	require.NotZero(t, allowed)
	waited := late[sort.Search(len(late), func(i int) bool { return late[i] > 5*time.Millisecond }):]
	if len(waited) > 0 { // for 50 ms, besides stalls of the machine
		require.Less(t, waited[len(waited)/2], 75*time.Millisecond)
		require.Less(t, waited[len(waited)-1], time.Second)
	}
	require.NotZero(t, s.Stats().Failover.Outages)
	require.Eventually(t, func() bool { return s.Stats().Failover.Abandoned == 0 }, 20*time.Second, time.Millisecond)
}

// standIn checks a result that came without the store. For torture.Check it is a failure: the store
// may have charged it.
func standIn(t *testing.T, mode layer.Mode, res ratelimit.Result, err error) (bool, error) {
	var reduced *layer.UnavailableError
	switch {
	case errors.As(err, &reduced) == (mode == layer.Closed) && (err == nil || reduced != nil) && (mode != layer.Open || res.Allowed):
	default:
		t.Errorf("%v answers %+v, %v", mode, res, err)
	}
	return false, errStandIn
}

// killing kills and restarts the server once a second, until it is stopped. The server then runs.
func killing(t *testing.T, server *testhost.Redis, stop <-chan struct{}) {
	for {
		select {
		case <-time.After(600 * time.Millisecond):
		case <-stop:
			return
		}
		server.Kill()
		<-time.After(350 * time.Millisecond)
		if err := server.RedisProcess.Restart(); err != nil {
			t.Error(err)
			return
		}
	}
}
