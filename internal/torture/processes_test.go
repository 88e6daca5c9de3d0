package torture_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/faultproxy"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/internal/torture"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
)

// TestProcesses has three processes, of which one is killed, take from one key, while faults come and go.
func TestProcesses(t *testing.T) {
	t.Parallel()
	rule := ratelimit.GCRA(300, time.Second).WithBurst(200)
	for name, o := range map[string]layer.Options{
		"no layers": {},
		"prepaid":   {Prepaid: &layer.PrepaidOptions{Share: 20, Timeout: timeout}, DenyCache: &layer.DenyCacheOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stop func()
			takes := torture.Run(t, torture.Plan{
				Processes: 3, Killed: 1, Goroutines: 8, Units: 3, For: length(t, 1500*time.Millisecond),
				Server: func() string {
					var addr string
					addr, stop = breaking(t)
					return addr + " " + testhost.StartRedis(t, testhost.Durable...).Addr
				},
				Taker: func(addrs string) func(context.Context, int64) (bool, error) {
					addr, canary, _ := strings.Cut(addrs, " ")
					return inTime(t, canary, layersAt(t, addr, o), rule)
				},
			})
			stop()
			failed := 0
			for i, take := range takes {
				if take.Failed {
					failed++
				}
				takes[i].Failed = take.Failed || !take.Allowed // prepaid units deny others
			}
			t.Logf("%d takes, %d failed", len(takes), failed)
			tally("three processes, one of them killed", row{times: 1, takes: len(takes), other: true})
			require.NoError(t, torture.Check(asChecked(rule, nil), takes))
		})
	}
}

// breaking starts a Redis that has a fault again and again, until stop.
func breaking(t *testing.T) (addr string, stop func()) {
	server := testhost.StartRedis(t, testhost.Durable...)
	proxy := faultproxy.New(t, server.Addr)
	faults := append(networkFaults(t, proxy), serverFaults(t, server, nil)...)
	rnd := random(t)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stopped:
				return
			case <-time.After(200 * time.Millisecond):
			}
			hold := time.Duration(50+rnd.IntN(500)) * time.Millisecond
			if end := faults[rnd.IntN(len(faults))].begin(hold); end != nil {
				<-time.After(hold)
				end()
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(stopped); <-done })
	t.Cleanup(stop)
	return proxy.Addr, stop
}

// layersAt returns a store on the Redis at addr with layers.
func layersAt(t *testing.T, addr string, o layer.Options) ratelimit.Store {
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	stack, err := layer.New(newStore(t, c), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = stack.Close() })
	return stack
}

// inTime returns a function that takes by a rule from time to time, and fails the test at its end if a take
// has lasted longer than its deadline.
func inTime(t *testing.T, canary string, store ratelimit.Store, rule ratelimit.Rule) func(context.Context, int64) (bool, error) {
	limiter, err := ratelimit.NewLimiter(store, rule)
	require.NoError(t, err)
	stalls := watch(t, canary)
	var mu sync.Mutex
	var late [][2]time.Time
	t.Cleanup(func() {
		for _, l := range late {
			took := l[1].Sub(l[0])
			if stalled := stalls.Between(l[0], l[1]); took > timeout+slack+2*stalled {
				t.Errorf("waited for %v of %v, with stalls of %v", took, timeout, stalled)
			}
		}
	})
	return func(ctx context.Context, n int64) (bool, error) {
		<-time.After(rand.N(10 * time.Millisecond))
		sent := time.Now()
		res, err := limiter.Take(ctx, "k", n)
		if received := time.Now(); received.Sub(sent) > timeout+slack {
			mu.Lock()
			defer mu.Unlock()
			late = append(late, [2]time.Time{sent, received})
		}
		return res.Allowed, err
	}
}
