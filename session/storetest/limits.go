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

// remember binds i to user as a remembered session, under these limits.
func (s *subject) remember(t *testing.T, i id, user string, lim storage.Limits) id {
	t.Helper()
	renewed := id{i.locator, newDigest()}
	d := s.newDelta(i, nil)
	d.Rotate, d.Bind, d.Remember, d.Limits = renewed.digest, user, true, lim
	requireNoError(t, s.store.Commit(t.Context(), d))
	return renewed
}

func testRememberedSession(t *testing.T, s *subject) {
	created := newID()
	d := s.newDelta(created, nil)
	d.Create, d.Bind, d.Remember = true, "ada", true
	requireNoError(t, s.store.Commit(t.Context(), d))
	bound := s.remember(t, s.create(t, nil), "ada", s.timeLimits())
	unused := s.remember(t, s.create(t, nil), "ada", s.timeLimits())
	plain := s.login(t, "ada")
	s.requireListed(t, "ada", created, bound, unused, plain)
	s.advance(t, 10)
	s.requireGone(t, plain)
	for range 4 { // beyond the other limits
		for _, i := range []id{created, bound} {
			requireNoError(t, s.commit(t, i, setChange("a", "1")))
			rec, err := s.load(t, i)
			requireNoError(t, err)
			if !rec.Remembered || rec.Old {
				t.Fatalf("a remembered session has Remembered=%v and Old=%v", rec.Remembered, rec.Old)
			}
		}
		s.advance(t, 12)
	}
	s.requireListed(t, "ada", created, bound, unused)
	s.requireFields(t, unused, nil)
	s.requireRevoked(t, 1, "ada", created, bound)
	s.requireGone(t, unused)
	bound = s.rotate(t, bound, 0)
	s.advance(t, 2)
	for _, i := range []id{created, bound} {
		s.requireGone(t, i)
	}
	s.requireListed(t, "ada")
}

// testChangedRememberedLimit checks that remembered sessions end by the limits of the current call.
func testChangedRememberedLimit(t *testing.T, s *subject) {
	without, shorter := s.timeLimits(), s.timeLimits()
	without.Remembered, shorter.Remembered = 0, s.units(30)
	for _, lim := range []storage.Limits{without, shorter} {
		i := s.remember(t, s.create(t, nil), "ada", s.timeLimits())
		changed := s.remember(t, s.create(t, nil), "bob", s.timeLimits())
		s.advance(t, 9)
		_, err := s.store.Load(t.Context(), i.locator, i.digest, lim)
		requireNoError(t, err)
		s.advance(t, 21)
		_, err = s.store.Load(t.Context(), i.locator, i.digest, lim)
		requireErrorIs(t, err, storage.ErrNotFound)
		entries, err := s.store.List(t.Context(), "bob", lim)
		requireNoError(t, err)
		if len(entries) != 0 {
			t.Fatal("a session is listed that has ended")
		}
		d := s.newDelta(changed, setChange("a", "1"))
		d.Limits = lim
		requireErrorIs(t, s.store.Commit(t.Context(), d), storage.ErrGone)
	}
	off := s.remember(t, s.create(t, nil), "ada", without)
	s.advance(t, 9)
	rec, err := s.load(t, off)
	requireNoError(t, err)
	if !rec.Remembered {
		t.Fatal("the mark is lost without a limit")
	}
}

// testBindDecidesRemember checks that a bind without Remember makes a remembered session an ordinary one.
func testBindDecidesRemember(t *testing.T, s *subject) {
	i := s.bind(t, s.remember(t, s.create(t, nil), "ada", s.timeLimits()), "ada")
	rec, err := s.load(t, i)
	requireNoError(t, err)
	if rec.Remembered {
		t.Fatal("the session is still remembered")
	}
	again := s.remember(t, s.bind(t, s.create(t, nil), "ada"), "ada", s.timeLimits())
	s.advance(t, 10)
	s.requireGone(t, i)
	s.requireListed(t, "ada", again)
}

// testExpiredSessionsEnd checks that Revoke and MaxPerUser remove expired sessions. Longer limits must not let them load
// again.
func testExpiredSessionsEnd(t *testing.T, s *subject) {
	var expired []id
	for _, user := range []string{"ada", "bob"} {
		d := s.newDelta(newID(), nil)
		d.Create, d.Bind, d.Limits.Idle = true, user, s.units(2)
		requireNoError(t, s.store.Commit(t.Context(), d))
		expired = append(expired, id{d.Locator, d.Digest})
	}
	s.advance(t, 3)
	s.requireRevoked(t, 0, "ada")
	s.requireListed(t, "bob", s.enter(t, "bob", 1))
	for _, i := range expired {
		s.requireGone(t, i)
	}
}
