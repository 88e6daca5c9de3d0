package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/session/storage"
)

// write is what a save has to do to one field.
type write struct {
	storage.Change
	guard bool // only if the field is still what it was when this request loaded it
}

// fieldOverhead is what a field counts besides its name and value.
const fieldOverhead = 64

func cost(name string, v storage.Value) int {
	if !v.Exists {
		return 0
	}
	return len(name) + len(v.Bytes) + fieldOverhead
}

// write notes a write, unless it is too late, too large, or an addition to what is
// no counter.
func (s *Session) write(ctx context.Context, name string, w write) error {
	if name == "" {
		return errors.New("session: a field needs a name")
	}
	doing := fmt.Sprintf("the write of field %q", name)
	snap, err := s.writable(ctx, doing)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lateLocked() {
		return committed(doing)
	}
	return s.writeLocked(snap, name, w)
}

func (s *Session) writeLocked(snap *snapshot, name string, w write) error {
	before := s.valueLocked(snap, name)
	after, err := w.Apply(before)
	if w.Op == storage.OpAdd && !storage.Countable(w.N) {
		err = ErrNotCounter
	}
	if err == nil {
		err = s.fitsLocked(snap, name, before, after)
	}
	if err != nil {
		return fmt.Errorf("session: field %q: %w", name, err)
	}
	if s.writes == nil {
		s.writes = make(map[string]write)
	}
	s.writes[name] = s.mergeLocked(snap, name, w, after)
	s.growth += cost(name, after) - cost(name, before)
	return nil
}

// mergeLocked returns the write that does what the one before and w do.
func (s *Session) mergeLocked(snap *snapshot, name string, w write, after storage.Value) write {
	before, written := s.writes[name]
	switch {
	case !written || w.Op != storage.OpAdd:
	case before.Op != storage.OpAdd: // what is added to is the request's own
		w = write{Change: storage.Change{Op: storage.OpSet, Value: after.Bytes}}
	case storage.Countable(before.N + w.N):
		w.N += before.N
	default: // the sum is in range, but not what to add to the stored number
		w = write{Change: storage.Change{Op: storage.OpSet, Value: after.Bytes}, guard: true}
	}
	w.guard = w.guard || before.guard
	return w
}

// fitsLocked says whether a field may become after.
func (s *Session) fitsLocked(snap *snapshot, name string, before, after storage.Value) error {
	grows := cost(name, after) - cost(name, before)
	sent := grows > 0 || !before.Exists // also to delete what another request may have set
	if n := len(name) + len(after.Bytes); n > s.m.maxFieldBytes && sent {
		return fmt.Errorf("%w: %d bytes, and Options.MaxFieldBytes is %d", ErrTooLarge, n, s.m.maxFieldBytes)
	}
	if n := s.sizeLocked(snap) + grows; n > s.m.maxBytes && grows > 0 {
		return fmt.Errorf("%w: the session would have %d bytes, and Options.MaxBytes is %d", ErrTooLarge, n, s.m.maxBytes)
	}
	return nil
}

func (s *Session) sizeLocked(snap *snapshot) int {
	if !s.liveLocked(snap) {
		return s.growth
	}
	return snap.size + s.growth
}

// valueLocked returns a field as this request sees it.
func (s *Session) valueLocked(snap *snapshot, name string) storage.Value {
	v := s.storedLocked(snap, name)
	if w, written := s.writes[name]; written {
		v, _ = w.Apply(v) // what cannot be added to, shows; the store is going to refuse it
	}
	return v
}

// storedLocked returns a field as the store is known to have it.
func (s *Session) storedLocked(snap *snapshot, name string) storage.Value {
	if !s.liveLocked(snap) {
		return storage.Value{}
	}
	if v, ok := s.known[name]; ok {
		return v
	}
	return storage.Lookup(snap.fields, name)
}

// learnLocked notes what the store has in a field.
func (s *Session) learnLocked(snap *snapshot, name string, v storage.Value) {
	before := s.valueLocked(snap, name)
	if s.known == nil {
		s.known = make(map[string]storage.Value)
	}
	s.known[name] = v
	s.growth += cost(name, s.valueLocked(snap, name)) - cost(name, before)
}

// createsLocked says whether the writes make a session where there is none.
func (s *Session) createsLocked() bool {
	for _, w := range s.writes {
		if w.Op != storage.OpDelete {
			return true
		}
	}
	return s.user != ""
}
