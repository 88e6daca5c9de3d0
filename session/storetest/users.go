package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lazyreq/lazyreq/session/storage"
)

// bind binds i to user and gives it a new secret.
func (s *subject) bind(t *testing.T, i id, user string) id {
	t.Helper()
	renewed := id{i.locator, newDigest()}
	d := s.newDelta(i, nil)
	d.Rotate, d.Bind = renewed.digest, user
	requireNoError(t, s.store.Commit(t.Context(), d))
	return renewed
}

// login creates a session that is bound to user.
func (s *subject) login(t *testing.T, user string) id {
	t.Helper()
	i := newID()
	d := s.newDelta(i, setChange("device", "phone"))
	d.Create, d.Bind = true, user
	requireNoError(t, s.store.Commit(t.Context(), d))
	return i
}

// requireListed fails unless List returns exactly these sessions for user.
func (s *subject) requireListed(t *testing.T, user string, want ...id) {
	t.Helper()
	entries, err := s.store.List(t.Context(), user, s.timeLimits())
	requireNoError(t, err)
	got, wanted := map[storage.Locator]bool{}, map[storage.Locator]bool{}
	for _, e := range entries {
		got[e.Locator] = true
		if e.Record.User != user {
			t.Fatalf("a session of %q is listed for %q", e.Record.User, user)
		}
	}
	for _, i := range want {
		wanted[i.locator] = true
	}
	if len(entries) != len(want) || !maps.Equal(got, wanted) {
		t.Fatalf("%d sessions are listed for %q, not the %d that are the user's", len(entries), user, len(want))
	}
}

// requireRevoked revokes the sessions of user, except those in except. It fails unless Revoke returns the number want.
func (s *subject) requireRevoked(t *testing.T, want int, user string, except ...id) {
	t.Helper()
	n, err := s.store.Revoke(t.Context(), user, func(l storage.Locator) bool {
		return !slices.ContainsFunc(except, func(i id) bool { return i.locator == l })
	})
	requireNoError(t, err)
	if n != want {
		t.Fatalf("%d sessions of %q were revoked, not %d", n, user, want)
	}
}

func testListOfUser(t *testing.T, s *subject) {
	s.requireListed(t, "ada")
	anonymous := s.create(t, nil)
	phone, laptop := s.login(t, "ada"), s.bind(t, s.create(t, map[string]string{"device": "laptop"}), "ada")
	bob := s.login(t, "bob")
	s.requireListed(t, "ada", phone, laptop)
	s.requireListed(t, "bob", bob)
	s.requireListed(t, "")
	s.requireListed(t, "ad")

	odd := "\x00\xff{}:* " + strings.Repeat("é", (storage.MaxUser-7)/2)
	s.requireListed(t, odd, s.login(t, odd))

	for i, want := range map[id]string{phone: "ada", bob: "bob", anonymous: ""} {
		rec, err := s.load(t, i)
		requireNoError(t, err)
		if rec.User != want {
			t.Fatalf("a session of %q is loaded as one of %q", want, rec.User)
		}
	}
	s.advance(t, 2)
	requireNoError(t, s.commit(t, laptop, setChange("a", "1")))
	entries, err := s.store.List(t.Context(), "ada", s.timeLimits())
	requireNoError(t, err)
	for _, e := range entries {
		used := e.Record.Touched.Sub(e.Record.Created)
		switch device := string(e.Record.Fields["device"]); {
		case device != "phone" && device != "laptop":
			t.Fatalf("a session has the fields %q", e.Record.Fields)
		case (used >= s.units(2)) != (device == "laptop"):
			t.Fatalf("the %s was used %v after its creation", device, used)
		}
	}
}

func testBindToOtherUser(t *testing.T, s *subject) {
	ada := s.login(t, "ada")
	bob := s.bind(t, ada, "bob")
	s.requireGone(t, ada)
	s.requireListed(t, "ada")
	s.requireListed(t, "bob", bob)
	s.requireRevoked(t, 0, "ada")
	s.requireFields(t, bob, map[string]string{"device": "phone"})
	again := s.bind(t, bob, "bob")
	s.requireListed(t, "bob", again)
	renewed := s.rotate(t, again, 0)
	s.requireListed(t, "bob", renewed)
}

func testRevoke(t *testing.T, s *subject) {
	var ada []id
	for range 5 {
		ada = append(ada, s.login(t, "ada"))
	}
	bob, anonymous := s.login(t, "bob"), s.create(t, nil)
	requireNoError(t, s.store.Destroy(t.Context(), ada[4].locator, ada[4].digest))
	s.requireRevoked(t, 0, "ada", ada...)
	s.requireRevoked(t, 1, "ada", ada[1:]...)
	s.requireGone(t, ada[0])
	s.requireListed(t, "ada", ada[1:4]...)
	s.requireRevoked(t, 2, "ada", ada[1])
	s.requireFields(t, ada[1], map[string]string{"device": "phone"})
	s.requireRevoked(t, 1, "ada")
	for _, i := range ada {
		s.requireGone(t, i)
	}
	s.requireListed(t, "ada")
	s.requireRevoked(t, 0, "ada")
	s.requireRevoked(t, 0, "") // must not revoke sessions without a user
	s.requireFields(t, bob, map[string]string{"device": "phone"})
	s.requireFields(t, anonymous, nil)
}

func testListWithoutEnded(t *testing.T, s *subject) {
	idle, destroyed, kept := s.login(t, "ada"), s.login(t, "ada"), s.login(t, "ada")
	requireNoError(t, s.store.Destroy(t.Context(), destroyed.locator, destroyed.digest))
	s.requireListed(t, "ada", idle, kept)
	s.advance(t, 9)
	s.requireListed(t, "ada", idle, kept) // listing does not count as use
	requireNoError(t, s.commit(t, kept, nil))
	s.advance(t, 1)
	s.requireListed(t, "ada", kept)
	s.requireGone(t, idle)
	for range 3 {
		s.requireFields(t, kept, map[string]string{"device": "phone"})
		s.advance(t, 9)
	}
	s.requireListed(t, "ada", kept)
	s.requireRevoked(t, 1, "ada")
	s.requireGone(t, kept)
}

// testBindDuringDestroy binds a session again while it is destroyed or revoked. Afterwards the session must be gone, or
// it must be listed and can be revoked.
func testBindDuringDestroy(t *testing.T, s *subject) {
	for round := range 10 {
		user := fmt.Sprint("ada", round)
		i := s.login(t, user)
		all := []id{i}
		for range 4 {
			all = append(all, id{i.locator, newDigest()})
		}
		runConcurrently(6, func(k int) {
			ctx := context.WithoutCancel(t.Context())
			switch {
			case k == 0:
				_ = s.store.Destroy(ctx, i.locator, i.digest)
			case k > 1:
				d := s.newDelta(i, nil)
				d.Rotate, d.Bind = all[k-1].digest, user
				_ = s.store.Commit(ctx, d)
			case round%2 == 0:
				_, _ = s.store.Revoke(ctx, user, func(l storage.Locator) bool { return l == i.locator })
			}
		})
		s.requireRestRevoked(t, user, all)
	}
}

// requireRestRevoked fails unless all sessions that can still be loaded are listed and can be revoked.
func (s *subject) requireRestRevoked(t *testing.T, user string, all []id) {
	t.Helper()
	var left []id
	for _, i := range all {
		if _, err := s.load(t, i); err == nil {
			left = append(left, i)
		}
	}
	s.requireListed(t, user, left...)
	s.requireRevoked(t, len(left), user)
	for _, i := range all {
		s.requireGone(t, i)
	}
}

// testRevokeDuringLogins revokes a user's sessions during concurrent logins. Afterwards, sessions from before must be
// gone. Each session of the concurrent logins must be gone, or must be listed and can be revoked.
func testRevokeDuringLogins(t *testing.T, s *subject) {
	for round := range 5 {
		user := fmt.Sprint("ada", round)
		before := []id{s.login(t, user), s.login(t, user)}
		var mu sync.Mutex
		var during []id
		runConcurrently(20, func(k int) {
			if k%5 == 4 {
				if _, err := s.store.Revoke(t.Context(), user, func(storage.Locator) bool { return true }); err != nil {
					t.Error(err)
				}
				return
			}
			i := newID()
			d := s.newDelta(i, nil)
			d.Create, d.Bind = true, user
			if err := s.store.Commit(context.WithoutCancel(t.Context()), d); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			during = append(during, i)
		})
		for _, i := range before {
			s.requireGone(t, i)
		}
		s.requireRestRevoked(t, user, during)
	}
}
