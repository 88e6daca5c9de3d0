package testenv

import (
	"sort"
	"sync"
	"testing"
	"time"
)

const (
	checkPeriod = 5 * time.Millisecond
	// stallTime is the time between two checks from which on it counts as a stall.
	stallTime = 4 * checkPeriod
)

// Stalls records when a busy machine did not run this process, so that a test's bounds of time can account for
// it. It is safe for concurrent use. A nil Stalls has recorded none.
type Stalls struct {
	mu    sync.Mutex
	last  time.Time      // the last check
	times [][2]time.Time // beginning and end of each stall
}

// WatchStalls records stalls until the test ends. If probe is not nil, each check calls it, and the time that it
// takes counts as well: a probe of a server finds the stalls of this server, too.
func WatchStalls(tb testing.TB, probe func()) *Stalls {
	s := &Stalls{last: time.Now()}
	stop, stopped := make(chan struct{}), make(chan struct{})
	tb.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(checkPeriod):
			}
			if probe != nil {
				probe()
			}
			s.check(time.Now())
		}
	}()
	return s
}

func (s *Stalls) check(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.last) > stallTime {
		s.times = append(s.times, [2]time.Time{s.last, now})
	}
	s.last = now
}

// Between returns the duration of all stalls between two times, including one that has not ended.
func (s *Stalls) Between(from, to time.Time) (d time.Duration) {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.times), func(i int) bool { return s.times[i][1].After(from) })
	for ; i < len(s.times) && s.times[i][0].Before(to); i++ {
		d += overlap(s.times[i][0], s.times[i][1], from, to)
	}
	if now := time.Now(); now.Sub(s.last) > stallTime {
		d += overlap(s.last, now, from, to)
	}
	return d
}

// overlap returns the length of the interval that is in both a to b and from to to.
func overlap(a, b, from, to time.Time) time.Duration {
	if a.Before(from) {
		a = from
	}
	if b.After(to) {
		b = to
	}
	return max(0, b.Sub(a))
}

// Since returns the time since a call began, less twice the stalls since then: a call waits for several goroutines,
// and each may wait for a processor.
func (s *Stalls) Since(began time.Time) time.Duration {
	now := time.Now()
	return max(0, now.Sub(began)-2*s.Between(began, now))
}
