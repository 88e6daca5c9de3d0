package storetest

import (
	"testing"

	"github.com/lazyreq/lazyreq/session/storage"
)

// withDevice returns limits for calls from a device.
func (s *subject) withDevice(device string) storage.Limits {
	lim := s.timeLimits()
	lim.Touch, lim.Device = s.units(2), device
	return lim
}

// requireDevice fails unless this device is listed for the only session of ada.
func (s *subject) requireDevice(t *testing.T, want string) {
	t.Helper()
	entries, err := s.store.List(t.Context(), "ada", s.withDevice("lists"))
	requireNoError(t, err)
	if len(entries) != 1 {
		t.Fatalf("%d sessions are listed", len(entries))
	}
	if got := entries[0].Record.Device; got != want {
		t.Fatalf("the session has the device %.300q, not %.300q", got, want)
	}
}

// testDevice checks that touches of a user's session record the device, and that no other calls do.
func testDevice(t *testing.T, s *subject) {
	i := newID()
	commit := func(device string, d storage.Delta) {
		t.Helper()
		d.Limits = s.withDevice(device)
		requireNoError(t, s.store.Commit(t.Context(), d))
	}
	load := func(i id, device string) storage.Record {
		t.Helper()
		rec, err := s.store.Load(t.Context(), i.locator, i.digest, s.withDevice(device))
		requireNoError(t, err)
		return rec
	}
	d := s.newDelta(i, nil)
	d.Create = true
	commit("visitor", d)
	s.advance(t, 2)
	load(i, "visitor")
	i = s.bind(t, i, "ada") // without a device
	s.requireDevice(t, "")
	if rec := load(i, "early"); rec.Device != "" {
		t.Fatalf("the session of a visitor has the device %q", rec.Device)
	}
	s.requireDevice(t, "")

	odd := "\x00\xff :é" // any bytes
	for _, device := range []string{"first", odd, ""} {
		s.advance(t, 2)
		load(i, device)
		load(i, "early")
		if device != "" {
			s.requireDevice(t, device)
		}
	}
	s.requireDevice(t, odd)
	commit("writes", s.newDelta(i, setChange("a", "1")))
	s.requireDevice(t, "writes")
	renewed := s.rotate(t, i, s.units(9))
	s.advance(t, 3)
	load(i, "old secret")
	s.requireDevice(t, "writes")
	s.requireFields(t, renewed, map[string]string{"a": "1"})

	created := s.newDelta(newID(), nil)
	created.Create, created.Bind, created.MaxPerUser = true, "ada", 1
	commit("logs in", created)
	s.requireDevice(t, "logs in")
}
