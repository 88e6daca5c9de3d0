package storetest

import (
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

func testRotate(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"cart": "3"})
	renewed := id{i.locator, newDigest()}
	d := s.newDelta(i, setChange("user", "ada"))
	d.Rotate = renewed.digest
	requireNoError(t, s.store.Commit(t.Context(), d))

	s.requireGone(t, i)
	requireErrorIs(t, s.store.Destroy(t.Context(), i.locator, i.digest), storage.ErrGone)
	s.requireFields(t, renewed, map[string]string{"cart": "3", "user": "ada"})
	requireNoError(t, s.commit(t, renewed, setChange("cart", "4")))
	s.requireFields(t, renewed, map[string]string{"cart": "4", "user": "ada"})
}

// rotate gives i a new secret. The old secret can read until grace has passed.
func (s *subject) rotate(t *testing.T, i id, grace time.Duration) id {
	t.Helper()
	renewed := id{i.locator, newDigest()}
	d := s.newDelta(i, nil)
	d.Rotate, d.Grace = renewed.digest, grace
	requireNoError(t, s.store.Commit(t.Context(), d))
	return renewed
}

// requireReadOnly fails unless i can read the session but not write it.
func (s *subject) requireReadOnly(t *testing.T, i id, user string) {
	t.Helper()
	rec, err := s.load(t, i)
	requireNoError(t, err)
	if !rec.Old || string(rec.Fields["user"]) != user {
		t.Fatalf("an old secret found Old=%v and the user %q", rec.Old, rec.Fields["user"])
	}
	requireErrorIs(t, s.commit(t, i, setChange("user", "eve")), storage.ErrGone)
	d := s.newDelta(i, nil)
	d.Rotate = newDigest()
	requireErrorIs(t, s.store.Commit(t.Context(), d), storage.ErrGone)
	requireErrorIs(t, s.store.Destroy(t.Context(), i.locator, i.digest), storage.ErrGone)
}

func testSecretInGrace(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	renewed := s.rotate(t, i, s.units(3))
	rec, err := s.load(t, renewed)
	requireNoError(t, err)
	if rec.Old {
		t.Fatal("the new secret is said to be old")
	}
	s.requireReadOnly(t, i, "ada")
	s.advance(t, 2)
	requireNoError(t, s.commit(t, renewed, setChange("user", "bob")))
	s.requireReadOnly(t, i, "bob")
	s.advance(t, 1)
	s.requireGone(t, i)
	s.requireFields(t, renewed, map[string]string{"user": "bob"})

	again := s.rotate(t, renewed, s.units(15)) // longer than the idle limit
	s.advance(t, 9)
	s.requireReadOnly(t, renewed, "bob")
	s.advance(t, 1)
	s.requireGone(t, renewed) // a read with an old secret does not touch the session
	s.requireGone(t, again)
}

func testGraceEndsAtRotation(t *testing.T, s *subject) {
	first := s.create(t, map[string]string{"user": "ada"})
	second := s.rotate(t, first, s.units(9))
	third := s.rotate(t, second, s.units(9))
	s.requireGone(t, first)
	s.requireReadOnly(t, second, "ada")
	fourth := s.rotate(t, third, 0)
	for _, dead := range []id{first, second, third} {
		s.requireGone(t, dead)
	}
	fifth := s.rotate(t, fourth, s.units(9))
	bound := s.bind(t, fifth, "ada")
	for _, dead := range []id{fourth, fifth} {
		s.requireGone(t, dead)
	}
	s.requireFields(t, bound, map[string]string{"user": "ada"})
}
