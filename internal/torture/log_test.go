package torture_test

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/torture"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// subject is a key and the limiter that takes from it.
type subject struct {
	*ratelimit.Limiter
	rules []ratelimit.Rule
	key   string
	shard int
	exact bool          // the log contains the reason for every denial
	ahead time.Duration // how far the server's clock is ahead of this machine's
}

// event is a take as its caller observed it, or an add or a count of a meter.
type event struct {
	torture.Take
	err      error
	ends     []int64       // the ends of the charged windows, by rule
	interval time.Duration // the interval of a count, or 0 if the event is not a count
	count    int64
}

// log holds the observations of the callers in one episode.
type log struct {
	subjects []*subject
	answered []atomic.Int64  // by shard: when the latest answered take was sent
	stalls   *testenv.Stalls // nil if stalls are no excuse
	outages  []outage
	ended    int64 // when the callers had stopped

	mu      sync.Mutex
	events  map[*subject][]event
	excused []event
}

// call starts callers that take from the subjects at random. The returned function stops them and waits until
// they have returned.
func (l *log) call(ctx context.Context, callers int) (stop func()) {
	l.events = make(map[*subject][]event)
	rate := 100 * len(l.subjects) // takes per second, more than the rules allow
	if long() {
		rate = 4000
	}
	pause := 2 * time.Second * time.Duration(callers) / time.Duration(rate) // the maximum pause
	stopped := make(chan struct{})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for {
				select {
				case <-stopped:
					return
				case <-time.After(rand.N(pause)):
				}
				s := l.subjects[rand.IntN(len(l.subjects))]
				e := s.call(ctx)
				l.mu.Lock()
				l.events[s] = append(l.events[s], e)
				l.mu.Unlock()
				if a := &l.answered[s.shard]; !e.Failed && a.Load() < e.Sent {
					a.Store(e.Sent)
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(stopped)
		wg.Wait()
	})
}

// call adds to a meter, counts it, or does both in one call. It takes from a subject that is not a meter.
func (s *subject) call(ctx context.Context) (e event) {
	if !s.isMeter() {
		return s.take(ctx)
	}
	what := rand.IntN(3)
	if what > 0 {
		e.N = 1 + rand.Int64N(3)
	}
	if what < 2 {
		e.interval = []time.Duration{per, meterSpan}[rand.IntN(2)]
	}
	var res ratelimit.Result
	e.Sent = now()
	switch {
	case e.N == 0:
		e.count, e.err = s.Count(ctx, s.key, e.interval)
	case e.interval == 0:
		res, e.err = s.Add(ctx, s.key, e.N)
	default:
		e.count, e.err = s.AddCount(ctx, s.key, e.N, e.interval)
	}
	e.Received = now()
	e.Allowed, e.Failed = e.err == nil, e.err != nil || res.Source == ratelimit.FromFailover
	return e
}

func (s *subject) isMeter() bool { return s.rules[0].Limit() == 0 }

// take takes up to three units.
func (s *subject) take(ctx context.Context) (e event) {
	most := int64(3)
	for _, r := range s.rules {
		most = min(most, r.Burst())
	}
	e.N = 1 + rand.Int64N(most)
	e.Sent = now()
	res, err := s.Take(ctx, s.key, e.N)
	e.Received = now()
	e.err, e.Allowed = err, err == nil && res.Allowed
	// A layer that answered without the store may have charged it, too.
	e.Failed = err != nil || res.Source == ratelimit.FromFailover
	if e.Allowed && !e.Failed {
		each := res.Each()
		if each == nil {
			each = []ratelimit.Result{res}
		}
		for _, res := range each {
			e.ends = append(e.ends, res.Receipt.At-s.ahead.Microseconds())
		}
	}
	return e
}

// watch records the stalls of this process and of the server at addr, which has no faults.
func watch(t *testing.T, addr string) *testenv.Stalls {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	reply := make([]byte, len("+OK\r\n"))
	return testenv.WatchStalls(t, func() {
		_, _ = conn.Write([]byte("SET k v\r\n"))
		_, _ = conn.Read(reply)
	})
}

// stalled returns the duration of the stalls between two times.
func (l *log) stalled(from, to int64) time.Duration {
	return l.stalls.Between(time.UnixMicro(from), time.UnixMicro(to))
}
