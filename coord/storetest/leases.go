package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/coord"
)

// newRequest returns one attempt to acquire a lease of ten units that cannot be renewed.
func (s *subject) newRequest(name string) coord.LeaseRequest {
	return coord.LeaseRequest{ID: newID(), Name: name, Lifetime: s.units(10), MaxLifetime: s.units(10)}
}

// mustAcquire fails unless the lease is granted with a number that is larger than the user's last one.
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

// requireDenied fails unless the lease is denied for that reason.
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

// requireHolder fails unless the lease has a holder of this name, or none if it is "".
func (s *subject) requireHolder(t *testing.T, user, name string) coord.Holder {
	t.Helper()
	h, held, err := s.Holder(t.Context(), user)
	requireNoError(t, err)
	if h.Name != name || held != (name != "") {
		t.Fatalf("held: %v, by %q, not by %q", held, h.Name, name)
	}
	return h
}

func testOneHolder(t *testing.T, s *subject) {
	s.requireHolder(t, "u", "")
	number := s.mustAcquire(t, "u", s.newRequest("one"))
	s.advance(t, 3)
	d := s.requireDenied(t, "u", s.newRequest("two"), coord.ErrHeld)
	s.requireAbout(t, d.RetryAfter, 7)
	if d.Soonest != 0 || d.Holder.Name != "one" || d.Holder.Number != number {
		t.Fatalf("denied: %+v", d)
	}
	h := s.requireHolder(t, "u", "one")
	if h.Number != number || h.Until.Sub(h.Since) != s.units(10) || !h.Since.Equal(d.Holder.Since) {
		t.Fatalf("the holder is %+v, and was %+v", h, d.Holder)
	}
}

func testLeaseExpiry(t *testing.T, s *subject) {
	for range 5 {
		s.mustAcquire(t, "u", s.newRequest("one"))
		s.advance(t, 9)
		s.requireDenied(t, "u", s.newRequest("two"), coord.ErrHeld)
		s.advance(t, 1)
		s.requireHolder(t, "u", "")
	}
}

func testStaleLease(t *testing.T, s *subject) {
	old, other := s.newRequest("one"), s.newRequest("one")
	old.MaxLifetime = s.units(100)
	lost := func() {
		t.Helper()
		for _, r := range []coord.LeaseRequest{old, other} {
			_, err := s.Renew(t.Context(), "u", r)
			requireErrorIs(t, err, coord.ErrLost)
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
	for range 20 { // perhaps within one tick of the clock
		r := s.newRequest("one")
		s.mustAcquire(t, "u", r)
		requireNoError(t, s.Release(t.Context(), "u", r))
		requireErrorIs(t, s.Release(t.Context(), "u", r), coord.ErrLost)
		_, err := s.Renew(t.Context(), "u", r)
		requireErrorIs(t, err, coord.ErrLost)
		s.requireHolder(t, "u", "")
	}
}

func testRenewedLease(t *testing.T, s *subject) {
	r := s.newRequest("one")
	r.MaxLifetime = s.units(1000)
	number := s.mustAcquire(t, "u", r)
	_, err := s.Renew(t.Context(), "u", r) // perhaps within one tick of the clock
	requireNoError(t, err)
	for range 5 {
		s.advance(t, 8)
		left, err := s.Renew(t.Context(), "u", r)
		requireNoError(t, err)
		s.requireAbout(t, left, 10)
		s.requireAbout(t, s.requireDenied(t, "u", s.newRequest("two"), coord.ErrHeld).RetryAfter, 10)
	}
	if h := s.requireHolder(t, "u", "one"); h.Number != number {
		t.Fatalf("the number became %d, it was %d", h.Number, number)
	}
	s.advance(t, 10)
	_, err = s.Renew(t.Context(), "u", r)
	requireErrorIs(t, err, coord.ErrLost)
	s.mustAcquire(t, "u", s.newRequest("two"))
}

func testMaxLifetime(t *testing.T, s *subject) {
	r := s.newRequest("one")
	r.MaxLifetime = s.units(15)
	s.mustAcquire(t, "u", r)
	s.advance(t, 8)
	left, err := s.Renew(t.Context(), "u", r)
	requireNoError(t, err)
	s.requireAbout(t, left, 7)
	s.advance(t, 3)
	left, err = s.Renew(t.Context(), "u", r)
	requireErrorIs(t, err, coord.ErrMaxLifetime)
	s.requireAbout(t, left, 4)
	s.requireHolder(t, "u", "one")
	s.advance(t, 4)
	_, err = s.Renew(t.Context(), "u", r)
	requireErrorIs(t, err, coord.ErrLost)
	s.requireHolder(t, "u", "")

	short := s.newRequest("two")
	s.mustAcquire(t, "u", short)
	s.advance(t, 1)
	left, err = s.Renew(t.Context(), "u", short)
	requireErrorIs(t, err, coord.ErrMaxLifetime)
	s.requireAbout(t, left, 9)
}

func testLeaseTooSoon(t *testing.T, s *subject) {
	r := s.newRequest("one")
	r.MinInterval = s.units(30)
	s.mustAcquire(t, "u", r)
	s.advance(t, 5)
	requireNoError(t, s.Release(t.Context(), "u", r))
	for _, left := range []int{25, 20, 15, 10, 5} { // denied requests don't prolong it
		d := s.requireDenied(t, "u", r, coord.ErrTooSoon)
		s.requireAbout(t, d.RetryAfter, left)
		if d.Soonest != d.RetryAfter || d.Holder != (coord.Holder{}) {
			t.Fatalf("denied: %+v", d)
		}
		s.requireHolder(t, "u", "")
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

// remembered is longer than stores remember numbers.
const remembered = 2 * time.Hour

func testLeaseHeldAndTooSoon(t *testing.T, s *subject) {
	short := s.newRequest("one")
	short.MinInterval, short.MaxLifetime = s.units(4), s.units(100)
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
	for range 2 { // a renewal does not begin the interval again
		s.advance(t, 8)
		_, err := s.Renew(t.Context(), "long", long)
		requireNoError(t, err)
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
		s.requireDenied(t, user, s.newRequest("two"), coord.ErrHeld)
	}
	longest := s.newRequest(strings.Repeat("n", coord.MaxName))
	longest.Lifetime, longest.MaxLifetime, longest.MinInterval = coord.MaxTime, coord.MaxTime, coord.MaxTime
	s.mustAcquire(t, "longest", longest)
}

func testFencingNumberOfForgottenUser(t *testing.T, s *subject) {
	for range 3 {
		s.mustAcquire(t, "u", s.newRequest("one"))
		s.host.Advance(t, remembered)
		s.mustAcquire(t, "v", s.newRequest("one")) // may remove expired records
		s.advance(t, 10)
	}
}
