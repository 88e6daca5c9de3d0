package storetest

import (
	"testing"

	"github.com/lazyreq/lazyreq/session/storage"
)

func testIdleSessionEnds(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	unasked := s.create(t, nil)
	kept := s.create(t, nil)
	s.advance(t, 9)
	s.requireFields(t, kept, nil)
	s.advance(t, 1)
	requireErrorIs(t, s.commit(t, i, setChange("revived", "yes")), storage.ErrGone)
	s.requireGone(t, i)
	for _, ended := range []id{i, unasked} { // the digest does not matter any more
		requireNoError(t, s.store.Destroy(t.Context(), ended.locator, newDigest()))
	}
	s.requireFields(t, kept, nil)
}

func testUseTouches(t *testing.T, s *subject) {
	loaded, committed := s.create(t, nil), s.create(t, nil)
	for _, changes := range []map[string]storage.Change{setChange("a", "1"), nil, setChange("a", "2"), {"a": {Op: storage.OpDelete}}} {
		s.advance(t, 8)
		s.requireFields(t, loaded, nil)
		requireNoError(t, s.commit(t, committed, changes))
	}
	s.requireFields(t, committed, nil)
}

// testLoadBeforeTouchIsDue checks that a load does not extend the session before Limits.Touch has passed.
func testLoadBeforeTouchIsDue(t *testing.T, s *subject) {
	lim := s.timeLimits()
	lim.Touch = s.units(6)
	i := s.create(t, nil)
	s.advance(t, 4)
	_, err := s.store.Load(t.Context(), i.locator, i.digest, lim)
	requireNoError(t, err)
	s.advance(t, 6)
	_, err = s.store.Load(t.Context(), i.locator, i.digest, lim)
	requireErrorIs(t, err, storage.ErrNotFound)
}

func testAbsoluteLimit(t *testing.T, s *subject) {
	i := s.create(t, nil)
	for range 4 {
		s.advance(t, 4)
		requireNoError(t, s.commit(t, i, setChange("a", "1")))
		s.advance(t, 4)
		s.requireFields(t, i, map[string]string{"a": "1"})
	}
	s.advance(t, 4)
	d := s.newDelta(i, nil)
	d.Rotate = newDigest()
	requireNoError(t, s.store.Commit(t.Context(), d))
	i.digest = d.Rotate
	s.advance(t, 4)
	s.requireGone(t, i)
}
