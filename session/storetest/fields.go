package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

func unknown(t *testing.T, s *subject) {
	i := newID()
	s.gone(t, i)
	must(t, s.store.Destroy(t.Context(), i.locator, i.digest))
	s.gone(t, i)
}

func create(t *testing.T, s *subject) {
	before := s.create(t, nil)
	s.advance(t, 3)
	i := s.create(t, map[string]string{"user": `"ada"`, "empty": ""})
	s.holds(t, i, map[string]string{"user": `"ada"`, "empty": ""})
	s.holds(t, before, nil)

	first, err := s.load(t, before)
	must(t, err)
	rec, err := s.load(t, i)
	must(t, err)
	if apart := rec.Created.Sub(first.Created); apart < s.units(2) || apart > s.units(3)+time.Minute {
		t.Fatalf("sessions created 3 units (%v) apart say %v", s.units(3), apart)
	}
}

func createOver(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	for _, digest := range []storage.Digest{newDigest(), i.digest} {
		d := s.delta(id{i.locator, digest}, set("user", "eve"))
		d.Create = true
		is(t, s.store.Commit(t.Context(), d), storage.ErrExists)
	}
	s.holds(t, i, map[string]string{"user": "ada"})
}

func changeFields(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"keep": "1", "change": "1", "drop": "1"})
	must(t, s.commit(t, i, map[string]storage.Change{
		"change": {Op: storage.OpSet, Value: []byte("2")},
		"add":    {Op: storage.OpSet, Value: []byte("2")},
		"drop":   {Op: storage.OpDelete},
		"absent": {Op: storage.OpDelete},
	}))
	s.holds(t, i, map[string]string{"keep": "1", "change": "2", "add": "2"})

	must(t, s.commit(t, i, map[string]storage.Change{
		"keep": {Op: storage.OpDelete}, "change": {Op: storage.OpDelete}, "add": {Op: storage.OpDelete},
	}))
	s.holds(t, i, nil)
	must(t, s.commit(t, i, set("back", "3")))
	s.holds(t, i, map[string]string{"back": "3"})
}

func anyBytes(t *testing.T, s *subject) {
	fields := map[string]string{
		"digest": "a", "created": "b", "touched": "c", "absolute": "d", "_": "e", "0": "f", "é\n ": "g",
		"\x00": "\x00\xff\r\n", "\xff\xfe": "", "d": "h", "c": "i", "t": "j", "big": strings.Repeat("x", 64<<10),
	}
	i := s.create(t, fields)
	s.holds(t, i, fields)
	must(t, s.commit(t, i, map[string]storage.Change{"digest": {Op: storage.OpDelete}, "\x00": {Op: storage.OpDelete}}))
	delete(fields, "digest")
	delete(fields, "\x00")
	s.holds(t, i, fields)
}

func isolation(t *testing.T, s *subject) {
	i := newID()
	value := []byte("before")
	changes := map[string]storage.Change{"f": {Op: storage.OpSet, Value: value}}
	d := s.delta(i, changes)
	d.Create = true
	must(t, s.store.Commit(t.Context(), d))
	early, err := s.load(t, i)
	must(t, err)

	copy(value, "XXXXXX")
	changes["g"] = storage.Change{Op: storage.OpSet}
	s.holds(t, i, map[string]string{"f": "before"})

	must(t, s.commit(t, i, set("f", "after")))
	if got := string(early.Fields["f"]); got != "before" {
		t.Fatalf("a later commit has changed an earlier record: %q", got)
	}
}

func wrongSecret(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	for _, digest := range []storage.Digest{{}, newDigest(), storage.Digest(append(i.digest[:31:31], i.digest[31]^1))} {
		other := id{i.locator, digest}
		s.gone(t, other)
		d := s.delta(other, nil)
		d.Rotate = newDigest()
		is(t, s.store.Commit(t.Context(), d), storage.ErrGone)
		is(t, s.store.Destroy(t.Context(), other.locator, other.digest), storage.ErrGone)
		s.holds(t, i, map[string]string{"user": "ada"})
	}
}

func destroy(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	other := s.create(t, map[string]string{"user": "bob"})
	must(t, s.store.Destroy(t.Context(), i.locator, i.digest))
	s.gone(t, i)
	must(t, s.store.Destroy(t.Context(), i.locator, i.digest))
	s.gone(t, i)
	s.holds(t, other, map[string]string{"user": "bob"})
}

func endedContext(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := s.store.Load(ctx, i.locator, i.digest, s.timeLimits())
	is(t, err, context.Canceled)
	is(t, s.store.Commit(ctx, s.delta(i, set("user", "eve"))), context.Canceled)
	is(t, s.store.Destroy(ctx, i.locator, i.digest), context.Canceled)
	mine := s.login(t, "ada")
	_, err = s.store.List(ctx, "ada", s.timeLimits())
	is(t, err, context.Canceled)
	is(t, s.store.Revoke(ctx, "ada", mine.locator), context.Canceled)
	_, err = s.store.RevokeAll(ctx, "ada", storage.Locator{})
	is(t, err, context.Canceled)
	s.lists(t, "ada", mine)
	s.holds(t, i, map[string]string{"user": "ada"})
}

func malformed(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	both := s.delta(newID(), nil)
	both.Create, both.Rotate = true, newDigest()
	unlimited := s.delta(i, set("user", "eve"))
	unlimited.Limits = storage.Limits{}
	mixed := sets(map[string]string{"user": "eve", "a": "1", "z": "1"})
	mixed["odd"] = storage.Change{Op: 200}

	expecting := s.delta(newID(), nil)
	expecting.Create, expecting.Expect = true, map[string]storage.Value{"user": {}}
	graceful := s.delta(i, set("user", "eve"))
	graceful.Grace = time.Second
	bound := s.delta(i, set("user", "eve"))
	bound.Bind = "eve"
	lenient := bound
	lenient.Rotate, lenient.Grace = newDigest(), time.Second
	backwards := s.delta(i, set("user", "eve"))
	backwards.Rotate, backwards.Grace = newDigest(), -1
	nameless := s.delta(i, set("user", "eve"))
	nameless.Expect = map[string]storage.Value{"": {}}

	for name, d := range map[string]storage.Delta{
		"create and expect":  expecting,
		"grace for nothing":  graceful,
		"bind, same secret":  bound,
		"bind with a grace":  lenient,
		"negative grace":     backwards,
		"nameless condition": nameless,
		"boundless addition": s.delta(i, map[string]storage.Change{"n": {Op: storage.OpAdd, N: storage.MaxCounter + 1}}),
		"create and rotate":  both,
		"no limits":          unlimited,
		"unknown op":         s.delta(i, mixed),
		"zero op":            s.delta(i, map[string]storage.Change{"user": {}}),
		"nameless field":     s.delta(i, set("", "eve")),
	} {
		if err := s.store.Commit(t.Context(), d); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	s.gone(t, id{both.Locator, both.Digest})
	s.gone(t, id{expecting.Locator, expecting.Digest})
	s.holds(t, i, map[string]string{"user": "ada"})
}
