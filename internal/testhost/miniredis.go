package testhost

import (
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Miniredis is a miniredis for one test. Only Advance changes its TIME, and only FastForward lets keys expire. It is safe
// for concurrent use.
type Miniredis struct {
	*miniredis.Miniredis
	tb testing.TB

	mu  sync.Mutex
	now time.Time
}

// StartMiniredis starts a server for the test. Its time is far from this machine's time.
func StartMiniredis(tb testing.TB) *Miniredis {
	s := &Miniredis{Miniredis: miniredis.RunT(tb), tb: tb, now: time.Date(2001, 9, 9, 1, 46, 40, 0, time.UTC)}
	s.SetTime(s.now)
	return s
}

// Now returns the server's time.
func (s *Miniredis) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Advance moves the server's time forward by d, or back if d is negative.
func (s *Miniredis) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
	s.SetTime(s.now)
}

// Client returns a client that is closed with the test.
func (s *Miniredis) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Protocol: 2, DisableIdentity: true})
	s.tb.Cleanup(func() { _ = c.Close() })
	return c
}
