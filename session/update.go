package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/session/storage"
)

// updateTries bounds the tries of an update. At least one of the updates that try at the
// same time succeeds, so that only many processes can make one fail this often.
const updateTries = 64

// update replaces a field by the result of fn, which is called without a lock.
func (s *state) update(ctx context.Context, name string, fn func(storage.Value) (storage.Value, error)) error {
	for try := range updateTries {
		if done, err := s.tryUpdate(ctx, name, fn, try > 0); done || err != nil {
			return err
		}
	}
	return &Error{Action: "save", Err: ErrConflict}
}

// tryUpdate is one try of update. It reads a stored field again if stale is true or if
// another request has updated the field while this one waited for its turn.
func (s *state) tryUpdate(ctx context.Context, name string, fn func(storage.Value) (storage.Value, error), stale bool) (bool, error) {
	if err := s.lockForWrite("the update", name); err != nil {
		return false, err
	}
	t, old, stored := s.snap.token, s.valueLocked(name), s.isStoredLocked(name)
	s.mu.Unlock()
	if stored && s.updating.CompareAndSwap(false, true) { // an update within another one would wait for it
		defer s.updating.Store(false)
		k := turn{t.locator, name}
		before, own := s.m.turns.join(k)
		defer s.m.turns.leave(k, own)
		if err := waitForTurn(ctx, before); err != nil {
			return false, err
		}
		stale = stale || before != nil
	}
	var err error
	if stored && stale {
		if old, err = s.reloadField(ctx, t, name); err != nil {
			return false, err
		}
	}
	value, err := fn(old)
	if err != nil {
		return false, err
	}
	return s.compareAndSwap(ctx, t, name, old, storage.Change{Op: storage.OpSet, Value: value.Bytes})
}

// take returns a field's value and removes it, unless another request did so first.
func (s Session) take(name string) (*state, storage.Value, error) {
	st, err := s.lockForWrite("Take", name)
	if err == nil {
		t, v := st.snap.token, st.valueLocked(name)
		st.mu.Unlock()
		if !v.Exists {
			return st, v, nil
		}
		var done bool
		if done, err = st.compareAndSwap(s.ctx, t, name, v, storage.Change{Op: storage.OpDelete}); done {
			return st, v, nil
		}
	}
	if errors.Is(err, ErrGone) { // the session ended, or its secret is an old one, which may only read
		err = nil
	}
	return st, storage.Value{}, err
}

// compareAndSwap applies c to a field, if the field is still old and the session still the one
// of t. A field that only this request has, or has written, is swapped here and saved
// with the other writes; any other in the store, at once. It returns false if the field was
// changed meanwhile.
func (s *state) compareAndSwap(ctx context.Context, t token, name string, old storage.Value, c storage.Change) (bool, error) {
	local, done, err := s.compareAndSwapLocal(t, name, old, c)
	if local || err != nil {
		return done, err
	}
	d := s.m.newDelta(t)
	d.ExpectField(name, old)
	d.Changes = map[string]storage.Change{name: c}
	err = s.m.store.Commit(ctx, d)
	switch {
	case err == nil:
		v, _ := c.Apply(old)
		s.updateSnapshot(name, v)
		return true, nil
	case errors.Is(err, ErrConflict):
		return false, nil
	}
	return false, &Error{Action: "save", Err: err}
}

// compareAndSwapLocal swaps a field that isn't the store's yet; local reports whether it was one.
func (s *state) compareAndSwapLocal(t token, name string, old storage.Value, c storage.Change) (local, done bool, err error) {
	if err := s.lockForWrite("the update", name); err != nil {
		return true, false, err
	}
	defer s.mu.Unlock()
	if s.snap.token != t {
		return true, false, &Error{Action: "save", Err: ErrGone}
	}
	if s.isStoredLocked(name) {
		after, _ := c.Apply(old)
		if err = s.checkSizeLocked(name, old, after); err != nil {
			err = option.Prefix(fmt.Sprintf("session: field %q: ", name), "session", err)
		}
		return false, false, err
	}
	if !s.valueLocked(name).Equal(old) {
		return true, false, nil
	}
	// After an addition, old depends on the number that was loaded.
	return true, true, s.keepWriteLocked(name, write{Change: c, guard: s.writes[name].Op == storage.OpAdd})
}

// isStoredLocked reports whether this request sees a field as the store has it. Otherwise
// the request has written the field or has no stored session.
func (s *state) isStoredLocked(name string) bool {
	_, written := s.writes[name]
	return s.snap.exists && !written
}

// reloadField reads one field from the store. The others stay as they were loaded.
func (s *state) reloadField(ctx context.Context, t token, name string) (storage.Value, error) {
	rec, err := s.m.store.Load(ctx, t.locator, t.digest, s.m.limits)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return storage.Value{}, &Error{Action: "save", Err: ErrGone}
	case err != nil:
		return storage.Value{}, &Error{Action: "load", Err: err}
	}
	v := storage.Lookup(rec.Fields, name)
	s.updateSnapshot(name, v)
	return v, nil
}
