package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/coord"
)

// request returns one attempt to get a lease of ten units, which can't be renewed.
func (s *subject) request(name string) coord.LeaseRequest {
	return coord.LeaseRequest{ID: newID(), Name: name, Lifetime: s.units(10), MaxLifetime: s.units(10), KeepNumber: time.Hour}
}

// get fails unless the lease can be had.
func (s *subject) get(t *testing.T, user string, r coord.LeaseRequest) (number int64) {
	t.Helper()
	number, err := s.Acquire(t.Context(), user, r)
	must(t, err)
	if number <= 0 {
		t.Fatalf("the number is %d", number)
	}
	return number
}

// denied fails unless the lease can't be had, for that reason.
func (s *subject) denied(t *testing.T, user string, r coord.LeaseRequest, reason error) *coord.DeniedError {
	t.Helper()
	r.ID = newID()
	number, err := s.Acquire(t.Context(), user, r)
	var denied *coord.DeniedError
	if !errors.As(err, &denied) || !errors.Is(err, reason) || number != 0 {
		t.Fatalf("got the number %d and the error %v, not %v", number, err, reason)
	}
	return denied
}

// holder fails unless the lease has a holder of this name, or none if it is "".
func (s *subject) holder(t *testing.T, user, name string) coord.Holder {
	t.Helper()
	h, held, err := s.Holder(t.Context(), user)
	must(t, err)
	if h.Name != name || held != (name != "") {
		t.Fatalf("held: %v, by %q, not by %q", held, h.Name, name)
	}
	return h
}

func oneHolder(t *testing.T, s *subject) {
	s.holder(t, "u", "")
	number := s.get(t, "u", s.request("one"))
	s.advance(t, 3)
	d := s.denied(t, "u", s.request("two"), coord.ErrHeld)
	s.about(t, d.RetryAfter, 7)
	if d.Soonest != 0 || d.Holder.Name != "one" || d.Holder.Number != number {
		t.Fatalf("denied: %+v", d)
	}
	h := s.holder(t, "u", "one")
	if h.Number != number || h.Until.Sub(h.Since) != s.units(10) || !h.Since.Equal(d.Holder.Since) {
		t.Fatalf("the holder is %+v, and was %+v", h, d.Holder)
	}
}

func leaseEnds(t *testing.T, s *subject) {
	last := int64(0)
	for range 5 {
		number := s.get(t, "u", s.request("one"))
		if number <= last {
			t.Fatalf("the number %d follows %d", number, last)
		}
		last = number
		s.advance(t, 9)
		s.denied(t, "u", s.request("two"), coord.ErrHeld)
		s.advance(t, 1)
		s.holder(t, "u", "")
	}
}

func stale(t *testing.T, s *subject) {
	old, other := s.request("one"), s.request("one")
	old.MaxLifetime = s.units(100)
	lost := func() {
		t.Helper()
		for _, r := range []coord.LeaseRequest{old, other} {
			_, err := s.Renew(t.Context(), "u", r)
			is(t, err, coord.ErrLost)
			is(t, s.Release(t.Context(), "u", r), coord.ErrLost)
		}
	}
	lost() // there was no lease yet
	s.get(t, "u", old)
	s.advance(t, 10)
	lost() // the lease has ended
	s.get(t, "u", s.request("two"))
	lost()
	s.holder(t, "u", "two")
	is(t, s.Release(t.Context(), "v", old), coord.ErrLost)
}

func released(t *testing.T, s *subject) {
	last := int64(0)
	for range 20 { // more often than the clock ticks, maybe
		r := s.request("one")
		number := s.get(t, "u", r)
		if number <= last {
			t.Fatalf("the number %d follows %d", number, last)
		}
		last = number
		must(t, s.Release(t.Context(), "u", r))
		is(t, s.Release(t.Context(), "u", r), coord.ErrLost)
		_, err := s.Renew(t.Context(), "u", r)
		is(t, err, coord.ErrLost)
		s.holder(t, "u", "")
	}
}

func renewed(t *testing.T, s *subject) {
	r := s.request("one")
	r.MaxLifetime = s.units(1000)
	number := s.get(t, "u", r)
	for range 5 {
		s.advance(t, 8)
		left, err := s.Renew(t.Context(), "u", r)
		must(t, err)
		s.about(t, left, 10)
		s.about(t, s.denied(t, "u", s.request("two"), coord.ErrHeld).RetryAfter, 10)
	}
	if h := s.holder(t, "u", "one"); h.Number != number {
		t.Fatalf("the number became %d, it was %d", h.Number, number)
	}
	s.advance(t, 10)
	_, err := s.Renew(t.Context(), "u", r)
	is(t, err, coord.ErrLost)
	s.get(t, "u", s.request("two"))
}

func maxLifetime(t *testing.T, s *subject) {
	r := s.request("one")
	r.MaxLifetime = s.units(15)
	s.get(t, "u", r)
	s.advance(t, 8)
	left, err := s.Renew(t.Context(), "u", r)
	must(t, err)
	s.about(t, left, 7)
	s.advance(t, 3)
	left, err = s.Renew(t.Context(), "u", r)
	is(t, err, coord.ErrMaxLifetime)
	s.about(t, left, 4)
	s.holder(t, "u", "one")
	s.advance(t, 4)
	_, err = s.Renew(t.Context(), "u", r)
	is(t, err, coord.ErrLost)
	s.holder(t, "u", "")

	short := s.request("two")
	s.get(t, "u", short)
	s.advance(t, 1)
	left, err = s.Renew(t.Context(), "u", short)
	is(t, err, coord.ErrMaxLifetime)
	s.about(t, left, 9)
}

func tooSoon(t *testing.T, s *subject) {
	r := s.request("one")
	r.MinInterval = s.units(30)
	s.get(t, "u", r)
	s.advance(t, 5)
	must(t, s.Release(t.Context(), "u", r))
	for _, left := range []int{25, 20, 15, 10, 5} { // denied requests don't prolong it
		d := s.denied(t, "u", r, coord.ErrTooSoon)
		s.about(t, d.RetryAfter, left)
		if d.Soonest != d.RetryAfter || d.Holder != (coord.Holder{}) {
			t.Fatalf("denied: %+v", d)
		}
		s.holder(t, "u", "")
		s.advance(t, 5)
	}
	s.get(t, "u", r)

	long := r
	long.MinInterval, long.ID = 20*remembered, newID()
	s.get(t, "v", long)
	s.host.Advance(t, 20*remembered-s.units(1))
	s.denied(t, "v", long, coord.ErrTooSoon)
	s.advance(t, 1)
	s.get(t, "v", long)
}

// remembered is longer than stores remember numbers.
const remembered = 2 * time.Hour

func heldAndTooSoon(t *testing.T, s *subject) {
	r := s.request("one")
	r.MinInterval = s.units(4)
	s.get(t, "u", r)
	s.advance(t, 1)
	d := s.denied(t, "u", r, coord.ErrHeld)
	s.about(t, d.RetryAfter, 9)
	s.about(t, d.Soonest, 3)
	r.MinInterval = s.units(20)
	d = s.denied(t, "u", r, coord.ErrHeld)
	s.about(t, d.RetryAfter, 19)
	s.about(t, d.Soonest, 19)
}

func renewalsDontCount(t *testing.T, s *subject) {
	r := s.request("one")
	r.MinInterval, r.MaxLifetime = s.units(20), s.units(100)
	s.get(t, "u", r)
	for range 2 {
		s.advance(t, 9)
		_, err := s.Renew(t.Context(), "u", r)
		must(t, err)
	}
	s.advance(t, 2)
	must(t, s.Release(t.Context(), "u", r))
	s.get(t, "u", r)
}

func users(t *testing.T, s *subject) {
	names := []string{"u", "U", "u ", "{u}", "{", "}", "{}u", "\x00\xff\r\n", "lease:u", strings.Repeat("u", coord.MaxName)}
	for _, user := range names {
		s.get(t, user, s.request("of "+user[:1]))
	}
	for _, user := range names {
		s.holder(t, user, "of "+user[:1])
		s.denied(t, user, s.request("two"), coord.ErrHeld)
	}
}

func forgottenNumbers(t *testing.T, s *subject) {
	last := int64(0)
	for range 3 {
		number := s.get(t, "u", s.request("one"))
		if number <= last {
			t.Fatalf("the number %d follows %d", number, last)
		}
		last = number
		s.host.Advance(t, remembered)
		s.get(t, "v", s.request("one")) // what is over may leave
		s.advance(t, 10)
	}
}

func longestLease(t *testing.T, s *subject) {
	r := s.request(strings.Repeat("n", coord.MaxName))
	r.Lifetime, r.MaxLifetime, r.MinInterval = coord.MaxTime, coord.MaxTime, coord.MaxTime
	s.get(t, strings.Repeat("u", coord.MaxName), r)
}
