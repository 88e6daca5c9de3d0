package session

import (
	"errors"
	"fmt"
	"maps"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/session/storage"
)

// write is a change that the save makes to one field.
type write struct {
	storage.Change
	guard bool // only if the field is still what it was when this request loaded it
}

// fieldOverhead is what a field counts besides its name and value.
const fieldOverhead = 64

var errNoName = errors.New("session: the field has no name: make fields by NewField")

// fieldSize returns how many bytes of the session's size a field takes.
func fieldSize(name string, v storage.Value) int {
	if !v.Exists {
		return 0
	}
	return len(name) + len(v.Bytes) + fieldOverhead
}

// keepWrite keeps a write for the save. It returns an error if the write comes too late, is
// too large, or adds to a field that is not a counter.
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
	if w.Op == storage.OpAdd && !storage.Countable(w.N) {
		err = ErrNotCounter
	}
	if err == nil {
		err = s.checkSizeLocked(name, before, after)
	}
	if err != nil {
		return option.Prefix(fmt.Sprintf("session: field %q: ", name), "session", err)
	}
	if s.writes == nil {
		s.writes = make(map[string]write)
	}
	s.writes[name] = s.combineWritesLocked(name, w, after)
	s.size += fieldSize(name, after) - fieldSize(name, before)
	return nil
}

// combineWritesLocked returns the one write that does what the field's earlier write and w do.
func (s *state) combineWritesLocked(name string, w write, after storage.Value) write {
	before, written := s.writes[name]
	switch {
	case !written || w.Op != storage.OpAdd:
	case before.Op != storage.OpAdd: // w adds to a value of the request's own
		w = write{Change: storage.Change{Op: storage.OpSet, Value: after.Bytes}}
	case storage.Countable(before.N + w.N):
		w.N += before.N
	default: // the sum is in range, but not the number to add to the stored one
		w = write{Change: storage.Change{Op: storage.OpSet, Value: after.Bytes}, guard: true}
	}
	w.guard = w.guard || before.guard
	return w
}

// checkSizeLocked returns ErrTooLarge if a field may not change from before to after.
func (s *state) checkSizeLocked(name string, before, after storage.Value) error {
	grows := fieldSize(name, after) - fieldSize(name, before)
	sent := grows > 0 || !before.Exists // also to delete a field that another request may have set
	if n, limit := len(name)+len(after.Bytes), s.m.opts.MaxFieldBytes; n > limit && sent {
		return fmt.Errorf("%w: %d bytes, and Options.MaxFieldBytes is %d", ErrTooLarge, n, limit)
	}
	if n, limit := s.size+grows, s.m.opts.MaxBytes; n > limit && grows > 0 {
		return fmt.Errorf("%w: the session would have %d bytes, and Options.MaxBytes is %d", ErrTooLarge, n, limit)
	}
	return nil
}

// updateSnapshot records what the store has in a field now.
func (s *state) updateSnapshot(name string, v storage.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.valueLocked(name)
	next := *s.snap
	next.fields = make(map[string][]byte, len(s.snap.fields)+1)
	maps.Copy(next.fields, s.snap.fields)
	delete(next.fields, name)
	if v.Exists {
		next.fields[name] = v.Bytes
	}
	s.snap, s.swapped = &next, true
	s.size += fieldSize(name, s.valueLocked(name)) - fieldSize(name, before)
}

// isNewLocked reports whether the writes make a session where there is none.
func (s *state) isNewLocked() bool {
	for _, w := range s.writes {
		if w.Op != storage.OpDelete {
			return true
		}
	}
	return s.user != ""
}
