package testenv

import (
	"sort"
	"sync"
	"testing"
	"time"
)

const (
	checkPeriod = 5 * time.Millisecond
	// stallTime is the longest time between two checks that does not count as a stall.
	stallTime = 4 * checkPeriod
)

// Stalls records when a busy machine did not run this process, so that a test can allow for it when it checks how long
// something took. It is safe for concurrent use. A nil Stalls has no stalls.
type Stalls struct {
	mu    sync.Mutex
	last  time.Time      // the time of the last check
	times [][2]time.Time // the beginning and the end of each stall
}

// WatchStalls records stalls until the test ends. If probe is not nil, each check calls it, and its duration counts as
// well. So a probe of a server also finds the stalls of this server.
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

// Between returns the total duration of the stalls between two times, including a stall that has not ended.
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

// Since returns the time since a call began minus twice the stalls since then. It subtracts them twice because a call
// waits for several goroutines, and each of them can wait for a processor.
func (s *Stalls) Since(began time.Time) time.Duration {
	now := time.Now()
	return max(0, now.Sub(began)-2*s.Between(began, now))
}
