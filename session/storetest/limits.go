package storetest

import (
	"testing"

	"github.com/lazyreq/lazyreq/session/storage"
)

func idle(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	unasked := s.create(t, nil)
	kept := s.create(t, nil)
	s.advance(t, 9)
	s.holds(t, kept, nil)
	s.advance(t, 1)
	is(t, s.commit(t, i, set("revived", "yes")), storage.ErrGone)
	s.gone(t, i)
	for _, ended := range []id{i, unasked} { // as if it were not there
		must(t, s.store.Destroy(t.Context(), ended.locator, newDigest()))
	}
	s.holds(t, kept, nil)
}

func loadsTouch(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	for range 4 {
		s.advance(t, 8)
		s.holds(t, i, map[string]string{"user": "ada"})
	}
}

func commitsTouch(t *testing.T, s *subject) {
	i := s.create(t, nil)
	for _, changes := range []map[string]storage.Change{set("a", "1"), nil, set("a", "2"), {"a": {Op: storage.OpDelete}}} {
		s.advance(t, 8)
		must(t, s.commit(t, i, changes))
	}
	s.holds(t, i, nil)
}

// touchDue reads when the touch is not due, so that the session ends as if it had
// not been read.
func touchDue(t *testing.T, s *subject) {
	lim := s.timeLimits()
	lim.Touch = s.units(6)
	i := s.create(t, nil)
	s.advance(t, 4)
	_, err := s.store.Load(t.Context(), i.locator, i.digest, lim)
	must(t, err)
	s.advance(t, 6)
	_, err = s.store.Load(t.Context(), i.locator, i.digest, lim)
	is(t, err, storage.ErrNotFound)
}

func absolute(t *testing.T, s *subject) {
	i := s.create(t, nil)
	for range 4 {
		s.advance(t, 4)
		must(t, s.commit(t, i, set("a", "1")))
		s.advance(t, 4)
		s.holds(t, i, map[string]string{"a": "1"})
	}
	s.advance(t, 4)
	d := s.delta(i, nil)
	d.Rotate = newDigest()
	must(t, s.store.Commit(t.Context(), d))
	i.digest = d.Rotate
	s.advance(t, 4)
	s.gone(t, i)
}
