package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

func testCreate(t *testing.T, s *subject) {
	before := s.create(t, nil)
	s.advance(t, 3)
	i := s.create(t, map[string]string{"user": `"ada"`, "empty": ""})
	s.requireFields(t, i, map[string]string{"user": `"ada"`, "empty": ""})
	s.requireFields(t, before, nil)

	first, err := s.load(t, before)
	requireNoError(t, err)
	rec, err := s.load(t, i)
	requireNoError(t, err)
	if apart := rec.Created.Sub(first.Created); apart < s.units(2) || apart > s.units(3)+time.Minute {
		t.Fatalf("sessions created 3 units (%v) apart say %v", s.units(3), apart)
	}
}

func testCreateExisting(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	for _, digest := range []storage.Digest{newDigest(), i.digest} {
		d := s.newDelta(id{i.locator, digest}, setChange("user", "eve"))
		d.Create = true
		requireErrorIs(t, s.store.Commit(t.Context(), d), storage.ErrExists)
	}
	s.requireFields(t, i, map[string]string{"user": "ada"})
}

func testChangeFields(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"keep": "1", "change": "1", "drop": "1"})
	requireNoError(t, s.commit(t, i, map[string]storage.Change{
		"change": {Op: storage.OpSet, Value: []byte("2")},
		"add":    {Op: storage.OpSet, Value: []byte("2")},
		"drop":   {Op: storage.OpDelete},
		"absent": {Op: storage.OpDelete},
	}))
	s.requireFields(t, i, map[string]string{"keep": "1", "change": "2", "add": "2"})

	requireNoError(t, s.commit(t, i, map[string]storage.Change{
		"keep": {Op: storage.OpDelete}, "change": {Op: storage.OpDelete}, "add": {Op: storage.OpDelete},
	}))
	s.requireFields(t, i, nil)
	requireNoError(t, s.commit(t, i, setChange("back", "3")))
	s.requireFields(t, i, map[string]string{"back": "3"})
}

func testFieldsOfAnyBytes(t *testing.T, s *subject) {
	fields := map[string]string{
		"digest": "a", "created": "b", "touched": "c", "absolute": "d", "_": "e", "0": "f", "é\n ": "g",
		"\x00": "\x00\xff\r\n", "\xff\xfe": "", "d": "h", "c": "i", "t": "j", "big": strings.Repeat("x", 64<<10),
	}
	i := s.create(t, fields)
	s.requireFields(t, i, fields)
	requireNoError(t, s.commit(t, i, map[string]storage.Change{"digest": {Op: storage.OpDelete}, "\x00": {Op: storage.OpDelete}}))
	delete(fields, "digest")
	delete(fields, "\x00")
	s.requireFields(t, i, fields)
}

func testBytesCopied(t *testing.T, s *subject) {
	i, value := newID(), []byte("before")
	d := s.newDelta(i, map[string]storage.Change{"f": {Op: storage.OpSet, Value: value}})
	d.Create = true
	requireNoError(t, s.store.Commit(t.Context(), d))
	early, err := s.load(t, i)
	requireNoError(t, err)

	copy(value, "edited")
	d.Changes["g"] = storage.Change{Op: storage.OpSet}
	s.requireFields(t, i, map[string]string{"f": "before"})

	requireNoError(t, s.commit(t, i, setChange("f", "after")))
	if got := string(early.Fields["f"]); got != "before" {
		t.Fatalf("a later commit has changed an earlier record: %q", got)
	}
}

func testWrongSecret(t *testing.T, s *subject) {
	i := s.create(t, map[string]string{"user": "ada"})
	for _, digest := range []storage.Digest{{}, newDigest(), storage.Digest(append(i.digest[:31:31], i.digest[31]^1))} {
		other := id{i.locator, digest}
		s.requireGone(t, other)
		d := s.newDelta(other, nil)
		d.Rotate = newDigest()
		requireErrorIs(t, s.store.Commit(t.Context(), d), storage.ErrGone)
		requireErrorIs(t, s.store.Destroy(t.Context(), other.locator, other.digest), storage.ErrGone)
		s.requireFields(t, i, map[string]string{"user": "ada"})
	}
}

func testDestroy(t *testing.T, s *subject) {
	i, other, unknown := s.create(t, map[string]string{"user": "ada"}), s.create(t, map[string]string{"user": "bob"}), newID()
	for range 2 { // the second round destroys sessions that are gone
		for _, ended := range []id{i, unknown} {
			requireNoError(t, s.store.Destroy(t.Context(), ended.locator, ended.digest))
			s.requireGone(t, ended)
		}
	}
	s.requireFields(t, other, map[string]string{"user": "bob"})
}

func testEndedContext(t *testing.T, s *subject) {
	i, mine := s.create(t, map[string]string{"user": "ada"}), s.login(t, "ada")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.store.Load(ctx, i.locator, i.digest, s.timeLimits())
	requireErrorIs(t, err, context.Canceled)
	requireErrorIs(t, s.store.Commit(ctx, s.newDelta(i, setChange("user", "eve"))), context.Canceled)
	requireErrorIs(t, s.store.Destroy(ctx, i.locator, i.digest), context.Canceled)
	_, err = s.store.List(ctx, "ada", s.timeLimits())
	requireErrorIs(t, err, context.Canceled)
	_, err = s.store.Revoke(ctx, "ada", func(storage.Locator) bool { return true })
	requireErrorIs(t, err, context.Canceled)
	s.requireListed(t, "ada", mine)
	s.requireFields(t, i, map[string]string{"user": "ada"})
}
