package torture

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/ratecheck"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// subject is a key and the limiter that takes from it.
type subject struct {
	*ratelimit.Limiter
	key   string
	shard int
	exact bool          // every denial has a reason in the log
	ahead time.Duration // of this machine's clock: the server's
}

// event is a take as its caller observed it, or an add or a count of a meter.
type event struct {
	ratecheck.Take
	err      error
	ends     []int64       // of the charged windows, by rule
	interval time.Duration // of a count; 0 if there was none
	count    int64
}

// log is what callers observed in one episode.
type log struct {
	subjects []*subject
	answered []atomic.Int64 // by shard: when the latest take was sent that was answered
	stalls   *stalls
	outages  []outage
	ended    int64 // when the callers had stopped

	mu      sync.Mutex
	events  map[*subject][]event
	excused []event
}

// call starts callers that take from the subjects at random. The returned function stops them, and waits for it.
func (l *log) call(ctx context.Context, callers int) (stop func()) {
	l.events = make(map[*subject][]event)
	rate := 100 * len(l.subjects) // per second, more than the rules allow
	if long() {
		rate = 4000
	}
	pause := 2 * time.Second * time.Duration(callers) / time.Duration(rate) // at most
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

// call adds to a meter, counts, or does both at once. It takes from another subject.
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

func (s *subject) isMeter() bool { return s.Rules()[0].Limit() == 0 }

// take takes up to three units.
func (s *subject) take(ctx context.Context) (e event) {
	most := int64(3)
	for _, r := range s.Rules() {
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

// stalls is when this process, or a Redis without a fault, did not run because the machine was busy.
type stalls struct {
	stop, stopped chan struct{}
	ignored       bool // none counts

	mu    sync.Mutex
	last  int64      // when they were last looked for
	times [][2]int64 // from and to
}

// watch watches this process and the server at addr until end.
func watch(t *testing.T, addr string) *stalls {
	const period = 5 * time.Millisecond
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	s := &stalls{stop: make(chan struct{}), stopped: make(chan struct{}), last: now()}
	go func() {
		defer close(s.stopped)
		defer conn.Close()
		reply := make([]byte, len("+OK\r\n"))
		for running := true; running; {
			select {
			case <-s.stop:
				running = false
			case <-time.After(period):
				_, _ = conn.Write([]byte("SET k v\r\n"))
				_, _ = conn.Read(reply)
			}
			s.mu.Lock()
			at := now()
			if at-s.last > 4*period.Microseconds() {
				s.times = append(s.times, [2]int64{s.last, at})
			}
			s.last = at
			s.mu.Unlock()
		}
	}()
	return s
}

func (s *stalls) end() { close(s.stop); <-s.stopped }

// catchUp waits until the stalls before this moment are known.
func (s *stalls) catchUp() {
	for began := now(); ; <-time.After(time.Millisecond) {
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		if last >= began {
			return
		}
	}
}

// between returns how long the process did not run in an interval.
func (s *stalls) between(from, to int64) (d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ignored {
		return 0
	}
	i, _ := slices.BinarySearchFunc(s.times, from, func(t [2]int64, from int64) int { return int(t[1] - from) })
	for ; i < len(s.times) && s.times[i][0] < to; i++ {
		d += time.Duration(min(to, s.times[i][1])-max(from, s.times[i][0])) * time.Microsecond
	}
	return d
}
