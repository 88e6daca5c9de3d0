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

// bind binds i to user, under a new secret.
func (s *subject) bind(t *testing.T, i id, user string) id {
	t.Helper()
	renewed := id{i.locator, newDigest()}
	d := s.newDelta(i, nil)
	d.Rotate, d.Bind = renewed.digest, user
	requireNoError(t, s.store.Commit(t.Context(), d))
	return renewed
}

// login creates a session that is user's.
func (s *subject) login(t *testing.T, user string) id {
	t.Helper()
	i := newID()
	d := s.newDelta(i, setChange("device", "phone"))
	d.Create, d.Bind = true, user
	requireNoError(t, s.store.Commit(t.Context(), d))
	return i
}

// requireListed fails unless exactly these sessions are user's.
func (s *subject) requireListed(t *testing.T, user string, want ...id) {
	t.Helper()
	entries, err := s.store.List(t.Context(), user, s.timeLimits())
	requireNoError(t, err)
	got := map[storage.Locator]bool{}
	for _, e := range entries {
		got[e.Locator] = true
		if e.Record.User != user {
			t.Fatalf("a session of %q is listed for %q", e.Record.User, user)
		}
	}
	wanted := map[storage.Locator]bool{}
	for _, i := range want {
		wanted[i.locator] = true
	}
	if len(entries) != len(want) || !maps.Equal(got, wanted) {
		t.Fatalf("%d sessions are listed for %q, %d of them are other ones than the %d that are the user's",
			len(entries), user, len(slices.DeleteFunc(slices.Collect(maps.Keys(got)), func(l storage.Locator) bool { return wanted[l] })), len(want))
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

	odd := "\x00\xff{}:* " + strings.Repeat("é", 500)
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
		rec, used := e.Record, e.Record.Touched.Sub(e.Record.Created)
		switch string(rec.Fields["device"]) {
		case "phone":
			if used != 0 {
				t.Fatalf("what was not used since was used %v after its creation", used)
			}
		case "laptop":
			if used < s.units(2) {
				t.Fatalf("what was used 2 units after its creation was used %v after", used)
			}
		default:
			t.Fatalf("a session has the fields %q", rec.Fields)
		}
	}
}

func testBindToOtherUser(t *testing.T, s *subject) {
	ada := s.login(t, "ada")
	bob := s.bind(t, ada, "bob")
	s.requireGone(t, ada)
	s.requireListed(t, "ada")
	s.requireListed(t, "bob", bob)
	n, err := s.store.RevokeAll(t.Context(), "ada", storage.Locator{})
	requireNoError(t, err)
	requireNoError(t, s.store.Revoke(t.Context(), "ada", bob.locator))
	if n != 0 {
		t.Fatalf("%d sessions were revoked of a user without sessions", n)
	}
	s.requireFields(t, bob, map[string]string{"device": "phone"})
	again := s.bind(t, bob, "bob")
	s.requireListed(t, "bob", again)
	renewed := s.rotate(t, again, 0)
	s.requireListed(t, "bob", renewed)
}

func testRevoke(t *testing.T, s *subject) {
	one, two := s.login(t, "ada"), s.login(t, "ada")
	anonymous := s.create(t, nil)
	requireNoError(t, s.store.Revoke(t.Context(), "ada", one.locator))
	s.requireGone(t, one)
	for _, l := range []storage.Locator{one.locator, newID().locator, anonymous.locator} {
		requireNoError(t, s.store.Revoke(t.Context(), "ada", l))
	}
	requireNoError(t, s.store.Revoke(t.Context(), "bob", two.locator))
	requireNoError(t, s.store.Revoke(t.Context(), "", anonymous.locator))
	s.requireFields(t, anonymous, nil)
	s.requireFields(t, two, map[string]string{"device": "phone"})
	s.requireListed(t, "ada", two)
}

func testRevokeAll(t *testing.T, s *subject) {
	var ada []id
	for range 5 {
		ada = append(ada, s.login(t, "ada"))
	}
	bob, anonymous := s.login(t, "bob"), s.create(t, nil)
	revoked := func(want int, except storage.Locator) {
		t.Helper()
		n, err := s.store.RevokeAll(t.Context(), "ada", except)
		requireNoError(t, err)
		if n != want {
			t.Fatalf("%d sessions were revoked, not %d", n, want)
		}
	}
	requireNoError(t, s.store.Destroy(t.Context(), ada[4].locator, ada[4].digest))
	revoked(3, ada[1].locator)
	s.requireListed(t, "ada", ada[1])
	s.requireFields(t, ada[1], map[string]string{"device": "phone"})
	for _, k := range []int{0, 2, 3, 4} {
		s.requireGone(t, ada[k])
	}
	revoked(0, ada[1].locator)
	revoked(1, storage.Locator{})
	s.requireGone(t, ada[1])
	revoked(0, storage.Locator{})
	s.requireListed(t, "ada")
	s.requireListed(t, "bob", bob)
	n, err := s.store.RevokeAll(t.Context(), "", storage.Locator{})
	requireNoError(t, err)
	if n != 0 {
		t.Fatalf("%d sessions without a user were revoked", n)
	}
	s.requireFields(t, bob, map[string]string{"device": "phone"})
	s.requireFields(t, anonymous, nil)
}

func testListWithoutEnded(t *testing.T, s *subject) {
	idle, destroyed, kept := s.login(t, "ada"), s.login(t, "ada"), s.login(t, "ada")
	requireNoError(t, s.store.Destroy(t.Context(), destroyed.locator, destroyed.digest))
	s.requireListed(t, "ada", idle, kept)
	s.advance(t, 9)
	requireNoError(t, s.commit(t, kept, nil))
	s.advance(t, 1)
	s.requireListed(t, "ada", kept)
	s.requireGone(t, idle)
	s.requireFields(t, kept, map[string]string{"device": "phone"})
	for range 3 {
		s.advance(t, 9)
		s.requireFields(t, kept, map[string]string{"device": "phone"})
	}
	s.requireListed(t, "ada", kept)
	n, err := s.store.RevokeAll(t.Context(), "ada", storage.Locator{})
	requireNoError(t, err)
	if n != 1 {
		t.Fatalf("%d sessions were revoked where one was alive", n)
	}
	s.requireGone(t, kept)
}

// testBindDuringDestroy binds a session again while it is destroyed or revoked. One comes first: the
// session is gone, or it is listed and can be revoked.
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
			switch k {
			case 0:
				_ = s.store.Destroy(ctx, i.locator, i.digest)
			case 1:
				if round%2 == 0 {
					_ = s.store.Revoke(ctx, user, i.locator)
				}
			default:
				d := s.newDelta(i, nil)
				d.Rotate, d.Bind = all[k-1].digest, user
				_ = s.store.Commit(ctx, d)
			}
		})
		var left []id
		for _, i := range all {
			if _, err := s.load(t, i); err == nil {
				left = append(left, i)
			}
		}
		s.requireListed(t, user, left...)
		n, err := s.store.RevokeAll(t.Context(), user, storage.Locator{})
		requireNoError(t, err)
		if n != len(left) {
			t.Fatalf("%d sessions were revoked, and %d were left", n, len(left))
		}
	}
}

// testRevokeDuringLogins logs in and revokes at once. What was bound before is gone; what was
// bound meanwhile is gone, or is listed and goes with the next.
func testRevokeDuringLogins(t *testing.T, s *subject) {
	for round := range 5 {
		user := fmt.Sprint("ada", round)
		before := []id{s.login(t, user), s.login(t, user)}
		var mu sync.Mutex
		var during []id
		runConcurrently(20, func(k int) {
			if k%5 == 4 {
				if _, err := s.store.RevokeAll(t.Context(), user, storage.Locator{}); err != nil {
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
		var left []id
		for _, i := range during {
			if _, err := s.load(t, i); err == nil {
				left = append(left, i)
			}
		}
		s.requireListed(t, user, left...)
		n, err := s.store.RevokeAll(t.Context(), user, storage.Locator{})
		requireNoError(t, err)
		if n != len(left) {
			t.Fatalf("%d sessions were revoked, and %d were left", n, len(left))
		}
		for _, i := range left {
			s.requireGone(t, i)
		}
	}
}
