package session

import (
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/session/storage"
)

// write is a change that the save makes to one field.
type write struct {
	storage.Change
	guard bool // the save fails if the field has changed since this request loaded it
}

// fieldOverhead is the number of bytes that each field adds to a session's size, besides its name and value.
const fieldOverhead = 64

var errNoName = errors.New("session: the field has no name: make fields with NewField")

// fieldSize returns the number of bytes that a field adds to a session's size.
func fieldSize(name string, v storage.Value) int64 {
	if !v.Exists {
		return 0
	}
	return int64(len(name) + len(v.Bytes) + fieldOverhead)
}

// valueLocked returns the value that this request sees: the loaded value, changed by the request's own write.
func (s *state) valueLocked(name string) storage.Value {
	v := storage.Lookup(s.snap.record.Fields, name)
	if w, written := s.writes[name]; written {
		v, _ = w.Apply(v) // an addition to a field that is not a counter changes nothing here; the store refuses it
	}
	return v
}

// keepWrite keeps a write for the save. It returns an error if the write comes too late, is too large, or adds to a
// field that is not a counter.
func (s Session) keepWrite(name string, w write) error {
	st, err := s.lockForWrite("a write", name)
	if err != nil {
		return err
	}
	defer st.mu.Unlock()
	return st.keepWriteLocked(name, w)
}

func (s *state) keepWriteLocked(name string, w write) error {
	if name == "" {
		return errNoName
	}
	before := s.valueLocked(name)
	after, err := w.Apply(before)
	if err != nil || w.Op == storage.OpAdd && !storage.Countable(w.N) {
		return fieldError(name, ErrNotCounter)
	}
	if err := s.checkSizeLocked(name, before, after); err != nil {
		return err
	}
	if s.writes == nil {
		s.writes = make(map[string]write)
	}
	s.writes[name] = s.combineWritesLocked(name, w, after)
	s.size += fieldSize(name, after) - fieldSize(name, before)
	return nil
}

func fieldError(name string, err error) error {
	return option.Prefix(fmt.Sprintf("session: field %q: ", name), "session", err)
}

// combineWritesLocked returns a write that does what the field's earlier write and then w would do. after is the
// resulting value.
func (s *state) combineWritesLocked(name string, w write, after storage.Value) write {
	before, written := s.writes[name]
	switch {
	case !written || w.Op != storage.OpAdd:
	case before.Op == storage.OpAdd && storage.Countable(before.N+w.N):
		w.N += before.N
	default: // w adds to a value that the request has set, or the sum of the two additions is out of range
		w = write{Change: storage.Change{Op: storage.OpSet, Value: after.Bytes}, guard: before.Op == storage.OpAdd}
	}
	w.guard = w.guard || before.guard
	return w
}

// checkSizeLocked returns ErrTooLarge if the session would become too large when a field changes from before to after. A
// session that is already too large may shrink. A deletion is also checked, because the save sends the field's name.
func (s *state) checkSizeLocked(name string, before, after storage.Value) error {
	size := max(s.size+fieldSize(name, after)-fieldSize(name, before), int64(len(name)))
	if limit := s.m.opts.MaxBytes; size > max(s.size, limit) {
		return fieldError(name, fmt.Errorf("%w: the session would have %d bytes, and Options.MaxBytes is %d", ErrTooLarge, size, limit))
	}
	return nil
}

// updateSnapshot records a change that the store has made to a field. c must not be an addition. If this request has
// destroyed the session of t meanwhile, updateSnapshot does nothing: the next session must not get a value of this one.
func (s *state) updateSnapshot(t token, name string, c storage.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snap.token != t {
		return
	}
	before := s.valueLocked(name)
	next := *s.snap
	delta := storage.Delta{Changes: map[string]storage.Change{name: c}}
	next.record.Fields, _ = delta.Apply(next.record.Fields)
	s.snap, s.swapped = &next, true
	s.size += fieldSize(name, s.valueLocked(name)) - fieldSize(name, before)
}

// isNewLocked reports whether the save creates a session if none is stored.
func (s *state) isNewLocked() bool {
	for _, w := range s.writes {
		if w.Op != storage.OpDelete {
			return true
		}
	}
	return s.user != ""
}
