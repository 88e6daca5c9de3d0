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

// bound binds i to user, under a new secret.
func (s *subject) bound(t *testing.T, i id, user string) id {
	t.Helper()
	renewed := id{i.locator, newDigest()}
	d := s.delta(i, nil)
	d.Rotate, d.Bind = renewed.digest, user
	must(t, s.store.Commit(t.Context(), d))
	return renewed
}

// login creates a session that is user's.
func (s *subject) login(t *testing.T, user string) id {
	t.Helper()
	i := newID()
	d := s.delta(i, set("device", "phone"))
	d.Create, d.Bind = true, user
	must(t, s.store.Commit(t.Context(), d))
	return i
}

// lists fails unless exactly these sessions are user's.
func (s *subject) lists(t *testing.T, user string, want ...id) {
	t.Helper()
	entries, err := s.store.List(t.Context(), user, s.timeLimits())
	must(t, err)
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

func list(t *testing.T, s *subject) {
	s.lists(t, "ada")
	anonymous := s.create(t, nil)
	phone, laptop := s.login(t, "ada"), s.bound(t, s.create(t, map[string]string{"device": "laptop"}), "ada")
	bob := s.login(t, "bob")
	s.lists(t, "ada", phone, laptop)
	s.lists(t, "bob", bob)
	s.lists(t, "")
	s.lists(t, "ad")

	odd := "\x00\xff{}:* " + strings.Repeat("é", 500)
	s.lists(t, odd, s.login(t, odd))

	for i, want := range map[id]string{phone: "ada", bob: "bob", anonymous: ""} {
		rec, err := s.load(t, i)
		must(t, err)
		if rec.User != want {
			t.Fatalf("a session of %q is loaded as one of %q", want, rec.User)
		}
	}
	s.advance(t, 2)
	must(t, s.commit(t, laptop, set("a", "1")))
	entries, err := s.store.List(t.Context(), "ada", s.timeLimits())
	must(t, err)
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

func rebind(t *testing.T, s *subject) {
	ada := s.login(t, "ada")
	bob := s.bound(t, ada, "bob")
	s.gone(t, ada)
	s.lists(t, "ada")
	s.lists(t, "bob", bob)
	n, err := s.store.RevokeAll(t.Context(), "ada", storage.Locator{})
	must(t, err)
	must(t, s.store.Revoke(t.Context(), "ada", bob.locator))
	if n != 0 {
		t.Fatalf("%d sessions were revoked of a user without sessions", n)
	}
	s.holds(t, bob, map[string]string{"device": "phone"})
	again := s.bound(t, bob, "bob")
	s.lists(t, "bob", again)
	renewed := s.rotated(t, again, 0)
	s.lists(t, "bob", renewed)
}

func revoke(t *testing.T, s *subject) {
	one, two := s.login(t, "ada"), s.login(t, "ada")
	anonymous := s.create(t, nil)
	must(t, s.store.Revoke(t.Context(), "ada", one.locator))
	s.gone(t, one)
	for _, l := range []storage.Locator{one.locator, newID().locator, anonymous.locator} {
		must(t, s.store.Revoke(t.Context(), "ada", l))
	}
	must(t, s.store.Revoke(t.Context(), "bob", two.locator))
	must(t, s.store.Revoke(t.Context(), "", anonymous.locator))
	s.holds(t, anonymous, nil)
	s.holds(t, two, map[string]string{"device": "phone"})
	s.lists(t, "ada", two)
}

func revokeAll(t *testing.T, s *subject) {
	var ada []id
	for range 5 {
		ada = append(ada, s.login(t, "ada"))
	}
	bob, anonymous := s.login(t, "bob"), s.create(t, nil)
	revoked := func(want int, except storage.Locator) {
		t.Helper()
		n, err := s.store.RevokeAll(t.Context(), "ada", except)
		must(t, err)
		if n != want {
			t.Fatalf("%d sessions were revoked, not %d", n, want)
		}
	}
	must(t, s.store.Destroy(t.Context(), ada[4].locator, ada[4].digest))
	revoked(3, ada[1].locator)
	s.lists(t, "ada", ada[1])
	s.holds(t, ada[1], map[string]string{"device": "phone"})
	for _, k := range []int{0, 2, 3, 4} {
		s.gone(t, ada[k])
	}
	revoked(0, ada[1].locator)
	revoked(1, storage.Locator{})
	s.gone(t, ada[1])
	revoked(0, storage.Locator{})
	s.lists(t, "ada")
	s.lists(t, "bob", bob)
	n, err := s.store.RevokeAll(t.Context(), "", storage.Locator{})
	must(t, err)
	if n != 0 {
		t.Fatalf("%d sessions without a user were revoked", n)
	}
	s.holds(t, bob, map[string]string{"device": "phone"})
	s.holds(t, anonymous, nil)
}

func listEnded(t *testing.T, s *subject) {
	idle, destroyed, kept := s.login(t, "ada"), s.login(t, "ada"), s.login(t, "ada")
	must(t, s.store.Destroy(t.Context(), destroyed.locator, destroyed.digest))
	s.lists(t, "ada", idle, kept)
	s.advance(t, 9)
	must(t, s.commit(t, kept, nil))
	s.advance(t, 1)
	s.lists(t, "ada", kept)
	s.gone(t, idle)
	s.holds(t, kept, map[string]string{"device": "phone"})
	for range 3 {
		s.advance(t, 9)
		s.holds(t, kept, map[string]string{"device": "phone"})
	}
	s.lists(t, "ada", kept)
	n, err := s.store.RevokeAll(t.Context(), "ada", storage.Locator{})
	must(t, err)
	if n != 1 {
		t.Fatalf("%d sessions were revoked where one was alive", n)
	}
	s.gone(t, kept)
}

// bindRace binds a session again while it is destroyed or revoked. One comes first: the
// session is gone, or it is listed and can be revoked.
func bindRace(t *testing.T, s *subject) {
	for round := range 10 {
		user := fmt.Sprint("ada", round)
		i := s.login(t, user)
		all := []id{i}
		for range 4 {
			all = append(all, id{i.locator, newDigest()})
		}
		together(6, func(k int) {
			ctx := context.WithoutCancel(t.Context())
			switch k {
			case 0:
				_ = s.store.Destroy(ctx, i.locator, i.digest)
			case 1:
				if round%2 == 0 {
					_ = s.store.Revoke(ctx, user, i.locator)
				}
			default:
				d := s.delta(i, nil)
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
		s.lists(t, user, left...)
		n, err := s.store.RevokeAll(t.Context(), user, storage.Locator{})
		must(t, err)
		if n != len(left) {
			t.Fatalf("%d sessions were revoked, and %d were left", n, len(left))
		}
	}
}

// revokeRace logs in and revokes at once. What was bound before is gone; what was
// bound meanwhile is gone, or is listed and goes with the next.
func revokeRace(t *testing.T, s *subject) {
	for round := range 5 {
		user := fmt.Sprint("ada", round)
		before := []id{s.login(t, user), s.login(t, user)}
		var mu sync.Mutex
		var during []id
		together(20, func(k int) {
			if k%5 == 4 {
				if _, err := s.store.RevokeAll(t.Context(), user, storage.Locator{}); err != nil {
					t.Error(err)
				}
				return
			}
			i := newID()
			d := s.delta(i, nil)
			d.Create, d.Bind = true, user
			if err := s.store.Commit(context.WithoutCancel(t.Context()), d); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			during = append(during, i)
		})
		for _, i := range before {
			s.gone(t, i)
		}
		var left []id
		for _, i := range during {
			if _, err := s.load(t, i); err == nil {
				left = append(left, i)
			}
		}
		s.lists(t, user, left...)
		n, err := s.store.RevokeAll(t.Context(), user, storage.Locator{})
		must(t, err)
		if n != len(left) {
			t.Fatalf("%d sessions were revoked, and %d were left", n, len(left))
		}
		for _, i := range left {
			s.gone(t, i)
		}
	}
}
