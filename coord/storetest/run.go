package storetest

import (
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/coord"
)

// Store is the store under test.
type Store interface {
	coord.TokenStore
	coord.LeaseStore
}

// Host is the environment of the store under test.
type Host struct {
	// Open returns an empty store. It is called once for each case, inside Within, and closes
	// with t.Cleanup what it opens.
	Open func(t *testing.T) Store

	// Advance moves the store's clock forward by d. Only one goroutine calls it.
	Advance func(t *testing.T, d time.Duration)

	// Within runs one case, such as synctest.Test; nil means a plain call.
	Within func(t *testing.T, run func(t *testing.T))

	// Unit is the unit of time in the cases: tokens and leases last ten units. 0 means a second.
	// With a real clock it must be long enough for all calls of a case.
	Unit time.Duration
}

// Run runs every case as a subtest.
func Run(t *testing.T, h Host) {
	if h.Unit == 0 {
		h.Unit = time.Second
	}
	if h.Within == nil {
		h.Within = func(t *testing.T, run func(t *testing.T)) { run(t) }
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h.Within(t, func(t *testing.T) { c.run(t, &subject{Store: h.Open(t), host: h}) })
		})
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, s *subject)
}

var cases = []testCase{
	{"an unknown token is unknown, and stays so", unknown},
	{"a token has what it was issued with", issued},
	{"a token is used once", usedOnce},
	{"an unused token expires, and is remembered", expires},
	{"a used token is remembered as long as any", usedRemembered},
	{"a token that is not kept is forgotten when it expires", notKept},
	{"a revoked token is not used", revoked},
	{"a token is not issued again while it is remembered", issuedAgain},
	{"metadata is the caller's", isolation},
	{"the largest token", largestToken},
	{"one of 50 uses succeeds", concurrentUses},
	{"one of 50 issues succeeds", concurrentIssues},
	{"a token is used or revoked", useOrRevoke},

	{"a lease has one holder", oneHolder},
	{"a lease ends, and the next has a larger number", leaseEnds},
	{"a stale lease is neither renewed nor released", stale},
	{"a released lease is free", released},
	{"a renewed lease lasts", renewed},
	{"no renewal exceeds the maximum lifetime", maxLifetime},
	{"a lease doesn't begin too soon after the last", tooSoon},
	{"a lease that may not begin yet is held, too", heldAndTooSoon},
	{"renewals don't count as beginnings", renewalsDontCount},
	{"users are separate, whatever their names", users},
	{"numbers grow when a user is forgotten", forgottenNumbers},
	{"the longest lease", longestLease},
	{"one of 50 acquisitions succeeds", concurrentAcquisitions},
	{"holders don't overlap", overlap},

	{"calls of the same moment are separate", separate},
	{"an ended context has no effect", endedContext},
}

// subject is a store in one case.
type subject struct {
	Store
	host Host
}

func (s *subject) units(n int) time.Duration { return time.Duration(n) * s.host.Unit }

func (s *subject) advance(t *testing.T, units int) {
	t.Helper()
	s.host.Advance(t, s.units(units))
}

// about fails unless d is this many units, less the duration of the test.
func (s *subject) about(t *testing.T, d time.Duration, units int) {
	t.Helper()
	if want := s.units(units); d > want || d < want-s.host.Unit/2 {
		t.Fatalf("got %v, want %v", d, want)
	}
}

func newKey() (key coord.TokenKey) {
	rand.Read(key[:])
	return key
}

func newID() (id [16]byte) {
	rand.Read(id[:])
	return id
}

// together calls f from n goroutines that begin at the same moment, and returns how many calls
// returned true.
func together(n int, f func(k int) bool) (yes int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	start := make(chan struct{})
	for k := range n {
		wg.Go(func() {
			<-start
			if f(k) {
				mu.Lock()
				yes++
				mu.Unlock()
			}
		})
	}
	close(start)
	wg.Wait()
	return yes
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func is(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got the error %v, not %v", err, want)
	}
}
