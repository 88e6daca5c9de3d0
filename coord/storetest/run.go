// Package storetest tests implementations of coord.TokenStore and coord.LeaseStore, alone and under concurrency. A store's
// own tests call Run:
//
//	storetest.Run(t, storetest.Host{
//		Open:    func(t *testing.T) storetest.Store { … },
//		Advance: func(t *testing.T, d time.Duration) { clock.Add(d) },
//	})
//
// Run does not test the limits of a store's memory, nor network failures.
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
	// Open returns an empty store. It is called inside Within, once for each case. It registers what has to be closed
	// with t.Cleanup.
	Open func(t *testing.T) Store
	// Advance moves the store's clock forward by d. Only one goroutine calls it.
	Advance func(t *testing.T, d time.Duration)
	// Within runs a case, for example with synctest.Test. Nil means a plain call of run.
	Within func(t *testing.T, run func(t *testing.T))
	// Unit is the unit of time in the cases. Tokens and leases last ten units. 0 means a second. With a real clock, a
	// unit must be longer than all calls of a case together.
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
			h.Within(t, func(t *testing.T) { c.run(t, &subject{Store: h.Open(t), host: h, numbers: make(map[string]int64)}) })
		})
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, s *subject)
}

var cases = []testCase{
	{"an unknown token is unknown, and stays so", testUnknownToken},
	{"a token has what it was issued with", testIssuedToken},
	{"a token is used once", testUseOnce},
	{"an unused token expires, and is remembered", testTokenExpiry},
	{"a token is forgotten when it is not kept any longer", testTokenForgotten},
	{"a revoked token is not used", testRevokedToken},
	{"a token is not issued again while it is remembered", testIssueTwice},
	{"metadata is the caller's", testMetadataCopied},
	{"one of 50 uses succeeds", testConcurrentUses},
	{"one of 50 issues succeeds", testConcurrentIssues},
	{"a token is used or revoked", testConcurrentUseAndRevoke},
	{"concurrent calls for tokens get their own replies", testConcurrentTokensAreSeparate},

	{"a lease has one holder", testOneHolder},
	{"a lease ends, and the next has a larger number", testLeaseExpiry},
	{"a stale lease is neither renewed nor released", testStaleLease},
	{"a released lease is free", testReleasedLease},
	{"a renewed lease lasts", testRenewedLease},
	{"a lease doesn't begin too soon after the last", testLeaseTooSoon},
	{"a lease that may not begin yet is held, too", testLeaseHeldAndTooSoon},
	{"users are separate, whatever their names", testUsersAreSeparate},
	{"numbers grow when a user is forgotten", testFencingNumberOfForgottenUser},
	{"one of 50 acquisitions succeeds", testConcurrentAcquisitions},
	{"holders don't overlap", testHoldersDontOverlap},
	{"concurrent calls for leases get their own replies", testConcurrentLeasesAreSeparate},

	{"an ended context has no effect", testEndedContext},
}

// subject is the store in a case.
type subject struct {
	Store
	host    Host
	numbers map[string]int64 // the last fencing number of each user
}

func (s *subject) units(n int) time.Duration { return time.Duration(n) * s.host.Unit }

func (s *subject) advance(t *testing.T, units int) {
	t.Helper()
	s.host.Advance(t, s.units(units))
}

// requireAbout fails the test unless d is this number of units, or a little less because of the duration of the test.
func (s *subject) requireAbout(t *testing.T, d time.Duration, units int) {
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

// runConcurrently calls f from n goroutines at the same time. It returns the number of calls that returned true.
func runConcurrently(n int, f func(k int) bool) (yes int) {
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

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func requireErrorIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got the error %v, not %v", err, want)
	}
}
