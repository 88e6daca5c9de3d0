package torture_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	coordstore "github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
)

// stacks returns the options of layers around the store. The checks treat a take that a layer answers without the
// store as failed.
func stacks() map[string]layer.Options {
	failover := func(mode layer.Mode) *layer.FailoverOptions {
		return &layer.FailoverOptions{Timeout: timeout / 2, Mode: mode, Logger: slog.New(slog.DiscardHandler)}
	}
	return map[string]layer.Options{
		"deny cache":       {DenyCache: &layer.DenyCacheOptions{}},
		"failover, closed": {Failover: failover(layer.Closed)},
		"failover, open":   {Failover: failover(layer.Open), Shadow: &layer.ShadowOptions{Match: func(ratelimit.Op) bool { return false }}},
		"prepaid":          {Prepaid: &layer.PrepaidOptions{Timeout: timeout}},
		"all, and Local":   {DenyCache: &layer.DenyCacheOptions{}, Failover: failover(layer.Local), Prepaid: &layer.PrepaidOptions{Timeout: timeout}, Lists: &layer.ListsOptions{}},
	}
}

func TestLayers(t *testing.T) {
	t.Parallel()
	for name, o := range stacks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, layered(t, o, testhost.Durable, 0).run(t, length(t, 0)))
		})
	}
}

// layered returns a host with layers around the store of one Redis. The clock of Redis is ahead of this machine's.
func layered(t *testing.T, o layer.Options, args []string, ahead time.Duration) *host {
	var stack *layer.Store
	h := single(t, args, func(s ratelimit.Store) ratelimit.Store {
		var err error
		stack, err = layer.New(s, o)
		require.NoError(t, err)
		return stack
	})
	t.Cleanup(func() { _ = stack.Close() })
	h.breaks = o.Failover != nil || o.Prepaid != nil
	fresh := h.subjects
	h.subjects = func() []*subject {
		all := fresh()
		for _, s := range all {
			s.exact, s.ahead = false, ahead
		}
		return all
	}
	return h
}

// In TestClocksDiffer, the clocks of the server and of its clients differ by an hour.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			t.Parallel()
			file, args := newClock(t)
			write(t, file, ahead.Microseconds(), 1)
			h := layered(t, stacks()["all, and Local"], append(args, testhost.Durable...), ahead)
			h.row = "clocks of Redis and clients 1 h apart, with all layers"
			require.NoError(t, h.run(t, length(t, 0)))

			c := testhost.StartRedis(t, args...).Client(nil)
			require.WithinDuration(t, time.Now().Add(ahead), c.Time(t.Context()).Val(), time.Minute)
			store, err := coordstore.New(c, coordstore.Options{Timeout: 5 * time.Second})
			require.NoError(t, err)
			leases, err := coord.NewLeases(store, coord.LeaseOptions{Lifetime: time.Minute})
			require.NoError(t, err)
			lease, err := leases.Acquire(t.Context(), "ada")
			require.NoError(t, err)
			require.NoError(t, lease.Context().Err())
			require.WithinDuration(t, time.Now().Add(time.Minute), lease.Deadline(), 20*time.Second)
			_, err = leases.Acquire(t.Context(), "ada")
			var denied *coord.DeniedError
			require.ErrorAs(t, err, &denied)
			require.LessOrEqual(t, denied.RetryAfter, time.Minute)
			require.NoError(t, lease.Release())
		})
	}
}
