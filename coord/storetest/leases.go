package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/coord"
)

// newRequest returns a new attempt to acquire a lease of ten units.
func (s *subject) newRequest(name string) coord.LeaseRequest {
	return coord.LeaseRequest{ID: newID(), Name: name, Lifetime: s.units(10)}
}

// mustAcquire acquires the lease. It fails the test unless the number is larger than the user's last one.
func (s *subject) mustAcquire(t *testing.T, user string, r coord.LeaseRequest) (number int64) {
	t.Helper()
	number, err := s.Acquire(t.Context(), user, r)
	requireNoError(t, err)
	if number <= s.numbers[user] {
		t.Fatalf("the number %d follows %d", number, s.numbers[user])
	}
	s.numbers[user] = number
	return number
}

// requireDenied fails the test unless the store denies the lease for this reason.
func (s *subject) requireDenied(t *testing.T, user string, r coord.LeaseRequest, reason error) *coord.DeniedError {
	t.Helper()
	r.ID = newID()
	number, err := s.Acquire(t.Context(), user, r)
	var denied *coord.DeniedError
	if !errors.As(err, &denied) || !errors.Is(err, reason) || number != 0 {
		t.Fatalf("got the number %d and the error %v, not %v", number, err, reason)
	}
	return denied
}

// requireHolder fails the test unless the lease is held by a holder of this name.
func (s *subject) requireHolder(t *testing.T, user, name string) *coord.DeniedError {
	t.Helper()
	denied := s.requireDenied(t, user, s.newRequest("another"), coord.ErrHeld)
	if denied.Holder != name {
		t.Fatalf("the holder is %q, not %q", denied.Holder, name)
	}
	return denied
}

func testOneHolder(t *testing.T, s *subject) {
	s.mustAcquire(t, "u", s.newRequest("one"))
	s.advance(t, 3)
	d := s.requireHolder(t, "u", "one")
	s.requireAbout(t, d.RetryAfter, 7)
	if d.Soonest != 0 {
		t.Fatalf("denied: %+v", d)
	}
}

func testLeaseExpiry(t *testing.T, s *subject) {
	for range 5 {
		s.mustAcquire(t, "u", s.newRequest("one"))
		s.advance(t, 9)
		s.requireHolder(t, "u", "one")
		s.advance(t, 1)
	}
}

func testStaleLease(t *testing.T, s *subject) {
	old, other := s.newRequest("one"), s.newRequest("one")
	lost := func() {
		t.Helper()
		for _, r := range []coord.LeaseRequest{old, other} {
			requireErrorIs(t, s.Renew(t.Context(), "u", r), coord.ErrLost)
			requireErrorIs(t, s.Release(t.Context(), "u", r), coord.ErrLost)
		}
	}
	lost() // there was no lease yet
	s.mustAcquire(t, "u", old)
	s.advance(t, 10)
	lost() // the lease has ended
	s.mustAcquire(t, "u", s.newRequest("two"))
	lost()
	s.requireHolder(t, "u", "two")
	requireErrorIs(t, s.Release(t.Context(), "v", old), coord.ErrLost)
}

func testReleasedLease(t *testing.T, s *subject) {
	for range 20 { // some calls may happen within one tick of the clock
		r := s.newRequest("one")
		s.mustAcquire(t, "u", r)
		requireNoError(t, s.Release(t.Context(), "u", r))
		requireErrorIs(t, s.Release(t.Context(), "u", r), coord.ErrLost)
		requireErrorIs(t, s.Renew(t.Context(), "u", r), coord.ErrLost)
	}
}

func testRenewedLease(t *testing.T, s *subject) {
	r := s.newRequest("one")
	s.mustAcquire(t, "u", r)
	requireNoError(t, s.Renew(t.Context(), "u", r)) // may happen within one tick of the clock
	for range 5 {
		s.advance(t, 8)
		requireNoError(t, s.Renew(t.Context(), "u", r))
		s.requireAbout(t, s.requireHolder(t, "u", "one").RetryAfter, 10)
	}
	short := r
	short.Lifetime = s.units(3)
	requireNoError(t, s.Renew(t.Context(), "u", short))
	s.requireAbout(t, s.requireHolder(t, "u", "one").RetryAfter, 10)
	s.advance(t, 9)
	requireNoError(t, s.Renew(t.Context(), "u", short))
	s.requireAbout(t, s.requireHolder(t, "u", "one").RetryAfter, 3)
	s.advance(t, 3)
	requireErrorIs(t, s.Renew(t.Context(), "u", r), coord.ErrLost)
	s.mustAcquire(t, "u", s.newRequest("two"))
}

func testLeaseTooSoon(t *testing.T, s *subject) {
	r := s.newRequest("one")
	r.MinInterval = s.units(30)
	s.mustAcquire(t, "u", r)
	s.advance(t, 5)
	requireNoError(t, s.Release(t.Context(), "u", r))
	for _, left := range []int{25, 20, 15, 10, 5} { // denied requests do not extend the interval
		d := s.requireDenied(t, "u", r, coord.ErrTooSoon)
		s.requireAbout(t, d.RetryAfter, left)
		if d.Soonest != d.RetryAfter || d.Holder != "" {
			t.Fatalf("denied: %+v", d)
		}
		s.advance(t, 5)
	}
	r.ID = newID()
	s.mustAcquire(t, "u", r)

	long := r
	long.MinInterval, long.ID = 20*remembered, newID()
	s.mustAcquire(t, "v", long)
	s.host.Advance(t, 20*remembered-s.units(1))
	s.requireDenied(t, "v", long, coord.ErrTooSoon)
	s.advance(t, 1)
	long.ID = newID()
	s.mustAcquire(t, "v", long)
}

// Stores remember numbers for less than remembered.
const remembered = 2 * time.Hour

func testLeaseHeldAndTooSoon(t *testing.T, s *subject) {
	short := s.newRequest("one")
	short.MinInterval = s.units(4)
	s.mustAcquire(t, "short", short)
	long := short
	long.ID, long.MinInterval = newID(), s.units(20)
	s.mustAcquire(t, "long", long)
	s.advance(t, 1)
	d := s.requireDenied(t, "short", short, coord.ErrHeld)
	s.requireAbout(t, d.RetryAfter, 9)
	s.requireAbout(t, d.Soonest, 3)
	d = s.requireDenied(t, "long", long, coord.ErrHeld)
	s.requireAbout(t, d.RetryAfter, 19)
	s.requireAbout(t, d.Soonest, 19)
	for range 2 { // renewals do not begin a new interval
		s.advance(t, 8)
		requireNoError(t, s.Renew(t.Context(), "long", long))
	}
	s.advance(t, 3)
	requireNoError(t, s.Release(t.Context(), "long", long))
	long.ID = newID()
	s.mustAcquire(t, "long", long)
}

func testUsersAreSeparate(t *testing.T, s *subject) {
	names := []string{"u", "U", "u ", "{u}", "{", "}", "{}u", "\x00\xff\r\n", "lease:u", strings.Repeat("u", coord.MaxName)}
	for _, user := range names {
		s.mustAcquire(t, user, s.newRequest("of "+user[:1]))
	}
	for _, user := range names {
		s.requireHolder(t, user, "of "+user[:1])
	}
	longest := s.newRequest(strings.Repeat("n", coord.MaxName))
	longest.Lifetime, longest.MinInterval = coord.MaxTime, coord.MaxTime
	s.mustAcquire(t, "longest", longest)
}

func testFencingNumberOfForgottenUser(t *testing.T, s *subject) {
	for range 3 {
		s.mustAcquire(t, "u", s.newRequest("one"))
		s.host.Advance(t, remembered)
		s.mustAcquire(t, "v", s.newRequest("one")) // gives the store an occasion to remove expired records
		s.advance(t, 10)
	}
}
