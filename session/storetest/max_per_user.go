package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/lazyreq/lazyreq/session/storage"
)

// loginWithin binds i to user and leaves the user at most n sessions. It creates the session, or gives it the new digest
// renewed. The result is the session's new id.
func (s *subject) loginWithin(ctx context.Context, i id, renewed storage.Digest, user string, n int) (id, error) {
	d := s.newDelta(i, nil)
	d.Rotate, d.Bind, d.MaxPerUser = renewed, user, n
	if d.Create = renewed == (storage.Digest{}); d.Create {
		return i, s.store.Commit(ctx, d)
	}
	return id{i.locator, renewed}, s.store.Commit(ctx, d)
}

// enter creates a session for user, leaves the user at most n sessions, and advances the clock.
func (s *subject) enter(t *testing.T, user string, n int) id {
	t.Helper()
	i, err := s.loginWithin(t.Context(), newID(), storage.Digest{}, user, n)
	requireNoError(t, err)
	s.advance(t, 1)
	return i
}

func testMaxPerUser(t *testing.T, s *subject) {
	visitor, bob := s.create(t, nil), s.enter(t, "bob", 2)
	first, second := s.enter(t, "ada", 2), s.enter(t, "ada", 2)
	s.requireListed(t, "ada", first, second)
	third := s.enter(t, "ada", 2)
	s.requireGone(t, first)
	s.requireListed(t, "ada", second, third)

	visitor, err := s.loginWithin(t.Context(), visitor, newDigest(), "ada", 2) // the login counts, not the creation
	requireNoError(t, err)
	s.requireGone(t, second)
	s.advance(t, 1)
	again, err := s.loginWithin(t.Context(), third, newDigest(), "ada", 2)
	requireNoError(t, err)
	s.requireListed(t, "ada", again, visitor)
	s.advance(t, 1)
	last := s.enter(t, "ada", 2)
	s.requireGone(t, visitor)
	s.requireListed(t, "ada", again, last)

	s.enter(t, "ada", 0)
	only := s.enter(t, "ada", 1)
	s.requireListed(t, "ada", only)
	s.requireFields(t, only, nil)
	s.requireListed(t, "bob", bob)
}

// testEndedSessionsDontCount has sessions that ended in each way. They must not make a login end another session. A login
// must end those that were not used, because longer limits would let them load again.
func testEndedSessionsDontCount(t *testing.T, s *subject) {
	kept, idle, destroyed, moved := s.enter(t, "ada", 5), s.enter(t, "ada", 5), s.enter(t, "ada", 5), s.enter(t, "ada", 5)
	unused := s.login(t, "ada")
	requireNoError(t, s.store.Destroy(t.Context(), destroyed.locator, destroyed.digest))
	s.bind(t, moved, "bob")
	s.advance(t, 5)
	s.requireFields(t, kept, nil)
	s.advance(t, 6)
	s.requireGone(t, idle)
	failed, err := s.loginWithin(t.Context(), idle, newDigest(), "ada", 2)
	requireErrorIs(t, err, storage.ErrGone)
	s.requireGone(t, failed)
	second := s.enter(t, "ada", 2)
	longer := s.timeLimits()
	longer.Idle = longer.Absolute
	_, err = s.store.Load(t.Context(), unused.locator, unused.digest, longer)
	requireErrorIs(t, err, storage.ErrNotFound)
	s.requireListed(t, "ada", kept, second)
	renewed := s.rotate(t, second, s.units(4))
	for _, gone := range []id{idle, second} { // a login that cannot succeed ends no session
		_, err := s.loginWithin(t.Context(), gone, newDigest(), "ada", 1)
		requireErrorIs(t, err, storage.ErrGone)
		s.requireListed(t, "ada", kept, renewed)
	}
}

// testConcurrentLogins has a user who logs in many times at once. Of the sessions whose logins have succeeded, at most n
// exist at any moment, and in the end exactly n.
func testConcurrentLogins(t *testing.T, s *subject) {
	const n, logins = 3, 24
	for round := range 4 {
		user := fmt.Sprint("ada", round)
		all := []id{s.enter(t, user, n)}
		for k := range logins {
			if all = append(all, newID()); k%2 == 0 {
				all[len(all)-1] = s.create(t, nil)
			}
		}
		var mu sync.Mutex
		in := []id{all[0]} // the sessions whose logins have succeeded
		runConcurrently(logins, func(k int) {
			ctx := context.WithoutCancel(t.Context())
			var renewed storage.Digest
			if k%2 == 0 {
				renewed = newDigest()
			}
			i, err := s.loginWithin(ctx, all[k+1], renewed, user, n)
			if err != nil {
				if !errors.Is(err, storage.ErrGone) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			in = append(in, i)
			seen := slices.Clone(in)
			mu.Unlock()
			// No session comes back, so these existed together when seen was made.
			if left, err := s.existing(ctx, seen); len(left) > n || err != nil {
				t.Errorf("%d sessions existed at the same time, want at most %d; error: %v", len(left), n, err)
			}
		})
		left, err := s.existing(t.Context(), in)
		requireNoError(t, err)
		if len(left) != n {
			t.Fatalf("%d sessions are left, want %d", len(left), n)
		}
		s.requireListed(t, user, left...)
	}
}

// existing returns those sessions that can be loaded.
func (s *subject) existing(ctx context.Context, all []id) (left []id, err error) {
	for _, i := range all {
		switch _, err := s.store.Load(ctx, i.locator, i.digest, s.timeLimits()); {
		case err == nil:
			left = append(left, i)
		case !errors.Is(err, storage.ErrNotFound):
			return nil, err
		}
	}
	return left, nil
}
