package scale

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

var full = flag.Bool("full", false, "simulate a million decisions a second, for minutes")

const (
	machines = 100
	tick     = time.Millisecond
	watched  = 20 // the number of popular keys whose admissions are recorded
)

// demand is a number of keys and their limit. The popularity of the keys has a Zipf distribution with an exponent of 1.1.
type demand struct {
	name string
	keys int
	rule ratelimit.Rule
	// exceeds means that the most popular key asks for more than the limit.
	exceeds bool
}

// demands returns the demands for a number of decisions a second of all machines.
func demands(rate int64) []demand {
	return []demand{
		{"visitors", 1_000_000, ratelimit.PerSecond(rate / 1000), true},
		{"visitors, within their limits", 1_000_000, ratelimit.PerMinute(60 * rate), false},
		{"tenants", 1000, ratelimit.PerSecond(rate / 1000), true},
		{"tenants, within their limits", 1000, ratelimit.PerMinute(60 * rate), false},
	}
}

// cluster is the simulated machines and what they share.
type cluster struct {
	store   ratelimit.Store
	options layer.Options
	demand
	perTick int // decisions of a machine
	calls   atomic.Int64

	decisions, failed atomic.Int64

	mu       sync.Mutex
	admitted [watched][]time.Time
}

// machine is a server process with layers of its own.
type machine struct {
	net     *network
	layers  *layer.Store
	limiter *ratelimit.Limiter
	random  *rand.Rand
	zipf    *rand.Zipf
}

// newMachine starts machine i. Every tenth machine reaches the store late.
func (c *cluster) newMachine(t *testing.T, i int) *machine {
	m := &machine{random: rand.New(rand.NewPCG(1, uint64(i)))}
	m.zipf = rand.NewZipf(m.random, 1.1, 1, uint64(c.keys-1))
	m.net = &network{Store: c.store, delay: time.Millisecond, calls: &c.calls}
	if i%10 == 0 {
		m.net.delay = 100 * time.Millisecond
	}
	var err error
	m.layers, err = layer.New(m.net, c.options)
	require.NoError(t, err)
	m.limiter, err = ratelimit.NewLimiter(m.layers, c.rule)
	require.NoError(t, err)
	return m
}

// run makes decisions for so long. At the time of death, the machine loses its connections and its memory, and another one
// starts in its place.
func (c *cluster) run(t *testing.T, i int, length, death time.Duration) {
	m := c.newMachine(t, i)
	var dead *layer.Store
	var flights sync.WaitGroup
	for at := time.Duration(0); at < length; at += tick {
		if at == death {
			m.net.dead.Store(true)
			dead, m = m.layers, c.newMachine(t, i)
		}
		for range c.perTick {
			key := m.zipf.Uint64()
			flights.Go(func() { c.take(m.limiter, key) })
		}
		<-time.After(tick)
	}
	flights.Wait()
	if dead != nil {
		_ = dead.Close() // ends its goroutines, but it cannot give units back
	}
	require.NoError(t, m.layers.Close())
}

func (c *cluster) take(l *ratelimit.Limiter, key uint64) {
	var at time.Time
	ctx := context.Background()
	if key < watched {
		ctx = context.WithValue(ctx, atKey{}, &at)
	}
	res, err := l.Take(ctx, strconv.FormatUint(key, 36), 1)
	c.decisions.Add(1)
	switch {
	case err != nil:
		c.failed.Add(1)
	case res.Allowed && key < watched:
		if at.IsZero() || res.Source == ratelimit.FromPrepaid {
			at = time.Now()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.admitted[key] = append(c.admitted[key], at)
	}
}

// most returns the largest number of admissions of a key within any interval of length per.
func most(times []time.Time, per time.Duration) int {
	slices.SortFunc(times, time.Time.Compare)
	n, first := 0, 0
	for i := range times {
		for times[i].Sub(times[first]) >= per {
			first++
		}
		n = max(n, i+1-first)
	}
	return n
}

func TestScale(t *testing.T) {
	perTick, length := 1, time.Second
	if *full {
		perTick = 10
	}
	prepaid, denyCache := &layer.PrepaidOptions{}, &layer.DenyCacheOptions{}
	for _, d := range demands(int64(perTick * machines * int(time.Second/tick))) {
		for _, tt := range []struct {
			name    string
			options layer.Options
		}{
			{"store", layer.Options{}},
			{"DenyCache", layer.Options{DenyCache: denyCache}},
			{"Prepaid", layer.Options{Prepaid: prepaid}},
			{"both", layer.Options{DenyCache: denyCache, Prepaid: prepaid}},
		} {
			t.Run(d.name+"/"+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store, err := memstore.New(memstore.Options{MaxKeys: 2 * d.keys, MaxBytes: 8 << 30})
					require.NoError(t, err)
					c := &cluster{store: store, options: tt.options, demand: d, perTick: perTick}
					var all sync.WaitGroup
					for i := range machines {
						death := time.Duration(-1)
						if i%5 == 1 {
							death = time.Duration(i) * length / machines
						}
						all.Go(func() { c.run(t, i, length, death.Truncate(tick)) })
					}
					all.Wait()
					c.report(t)
				})
			})
		}
	}
}

// report checks the admissions of the watched keys, and logs the calls.
func (c *cluster) report(t *testing.T) {
	for key, times := range c.admitted {
		require.LessOrEqual(t, most(times, c.rule.Per()), int(c.rule.Limit()), "key %d", key)
	}
	n := c.decisions.Load()
	require.Less(t, c.failed.Load(), n/100, "only takes of dying machines fail")
	if c.exceeds {
		require.Greater(t, most(c.admitted[0], c.rule.Per()), int(c.rule.Limit())*9/10)
	}
	t.Logf("%d decisions, %.3f calls of the store for each, %d admissions of the first key", n,
		float64(c.calls.Load())/float64(n), len(c.admitted[0]))
}
