package storetest

import (
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

func rotate(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"cart": "3"})
	renewed := id{i.locator, newDigest()}
	d := s.delta(i, set("user", "ada"))
	d.Rotate = renewed.digest
	must(t, s.store.Commit(t.Context(), d))

	s.gone(t, i)
	is(t, s.store.Destroy(t.Context(), i.locator, i.digest), storage.ErrGone)
	s.holds(t, renewed, map[string]string{"cart": "3", "user": "ada"})
	must(t, s.commit(t, renewed, set("cart", "4")))
	s.holds(t, renewed, map[string]string{"cart": "4", "user": "ada"})
}

// rotated gives i a new secret, and the one before a grace.
func (s *subject) rotated(t *testing.T, i id, grace time.Duration) id {
	t.Helper()
	renewed := id{i.locator, newDigest()}
	d := s.delta(i, nil)
	d.Rotate, d.Grace = renewed.digest, grace
	must(t, s.store.Commit(t.Context(), d))
	return renewed
}

// old fails unless the session can be read by i, and not written.
func (s *subject) old(t *testing.T, i id, user string) {
	t.Helper()
	rec, err := s.load(t, i)
	must(t, err)
	if !rec.Old || string(rec.Fields["user"]) != user {
		t.Fatalf("an old secret found Old=%v and the user %q", rec.Old, rec.Fields["user"])
	}
	is(t, s.commit(t, i, set("user", "eve")), storage.ErrGone)
	d := s.delta(i, nil)
	d.Rotate = newDigest()
	is(t, s.store.Commit(t.Context(), d), storage.ErrGone)
	is(t, s.store.Destroy(t.Context(), i.locator, i.digest), storage.ErrGone)
}

func grace(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	renewed := s.rotated(t, i, s.units(3))
	rec, err := s.load(t, renewed)
	must(t, err)
	if rec.Old {
		t.Fatal("the new secret is said to be old")
	}
	s.old(t, i, "ada")
	s.advance(t, 2)
	must(t, s.commit(t, renewed, set("user", "bob")))
	s.old(t, i, "bob")
	s.advance(t, 1)
	s.gone(t, i)
	s.holds(t, renewed, map[string]string{"user": "bob"})

	again := s.rotated(t, renewed, s.units(15)) // longer than the session is idle
	s.advance(t, 9)
	s.old(t, renewed, "bob")
	s.advance(t, 1)
	s.gone(t, renewed) // what is read with an old secret is not used
	s.gone(t, again)
}

func graceEnds(t *testing.T, s *subject) {
	first := s.create(t, map[string]string{"user": "ada"})
	second := s.rotated(t, first, s.units(9))
	third := s.rotated(t, second, s.units(9))
	s.gone(t, first)
	s.old(t, second, "ada")
	fourth := s.rotated(t, third, 0)
	for _, dead := range []id{first, second, third} {
		s.gone(t, dead)
	}
	fifth := s.rotated(t, fourth, s.units(9))
	bound := s.bound(t, fifth, "ada")
	for _, dead := range []id{fourth, fifth} {
		s.gone(t, dead)
	}
	s.holds(t, bound, map[string]string{"user": "ada"})
}
