package session

import (
	"context"
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// updateTries bounds the tries of an update. At least one of several concurrent updates succeeds, so that only many
// processes can make one fail this often.
const updateTries = 64

// update replaces a field with the result of fn, which is called without a lock.
func (s *state) update(ctx context.Context, name string, fn func(storage.Value) (storage.Value, error)) error {
	if name == "" {
		return errNoName
	}
	for try := range updateTries {
		if done, err := s.tryUpdate(ctx, name, fn, try > 0); done || err != nil {
			return err
		}
	}
	return &Error{Action: "save", Err: ErrConflict}
}

// tryUpdate is one try of update. It reads a stored field again if stale is true, or if it had to wait for the updates
// of other requests.
func (s *state) tryUpdate(ctx context.Context, name string, fn func(storage.Value) (storage.Value, error), stale bool) (bool, error) {
	if err := s.lockForWrite("the update", name); err != nil {
		return false, err
	}
	t, old, stored := s.snap.token, s.valueLocked(name), s.isStoredLocked(name)
	s.mu.Unlock()
	if stored && s.updating.CompareAndSwap(false, true) { // an update within another one would wait for it
		defer s.updating.Store(false)
		before, leave := s.m.enterQueue(turn{t.locator, name})
		defer leave()
		if before != nil {
			if err := waitForTurn(ctx, before); err != nil {
				return false, err
			}
			stale = true
		}
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
	if name == "" {
		return nil, storage.Value{}, errNoName
	}
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

// compareAndSwap applies c to a field if its value is still old and the session still has the token t. It returns false
// if the field was changed meanwhile. It changes a stored field in the store at once, and any other field in the
// request's writes.
func (s *state) compareAndSwap(ctx context.Context, t token, name string, old storage.Value, c storage.Change) (bool, error) {
	if stored, done, err := s.compareAndSwapLocal(t, name, old, c); !stored || err != nil {
		return done, err
	}
	d := s.m.newDelta(t)
	d.Expect[name], d.Changes[name] = old, c
	err := s.m.store.Commit(ctx, d)
	switch {
	case err == nil:
		s.updateSnapshot(t, name, c)
		return true, nil
	case errors.Is(err, ErrConflict):
		return false, nil
	}
	return false, &Error{Action: "save", Err: err}
}

// compareAndSwapLocal swaps a field in the request's writes. If the field is stored, it only checks the size.
func (s *state) compareAndSwapLocal(t token, name string, old storage.Value, c storage.Change) (stored, done bool, err error) {
	if err := s.lockForWrite("the update", name); err != nil {
		return false, false, err
	}
	defer s.mu.Unlock()
	switch {
	case s.snap.token != t:
		return false, false, &Error{Action: "save", Err: ErrGone}
	case s.isStoredLocked(name):
		after, _ := c.Apply(old)
		// s.size counts the loaded value. old may be a newer one.
		return true, false, s.checkSizeLocked(name, s.valueLocked(name), after)
	case !s.valueLocked(name).Equal(old):
		return false, false, nil
	}
	// After an addition, old depends on the loaded number.
	return false, true, s.keepWriteLocked(name, write{Change: c, guard: s.writes[name].Op == storage.OpAdd})
}

// isStoredLocked reports whether the request sees a field as it is stored. Otherwise the request has written the field
// or has no stored session.
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
	return storage.Lookup(rec.Fields, name), nil
}

// maxTurnWait bounds how long a try of an update waits for its turn.
const maxTurnWait = 50 * time.Millisecond

// A turn is the right to update a field of a session. The updates of a process take turns, because only one of several
// concurrent compare-and-swaps succeeds. An update may go on without its turn: the store's compare-and-swap keeps the
// updates correct.
type turn struct {
	locator storage.Locator
	field   string
}

// enterQueue enters the queue for t. It returns a channel that is closed when the update before has left the queue, or nil
// if there is none, and the function that leaves.
func (m *Manager) enterQueue(t turn) (before <-chan struct{}, leave func()) {
	own := make(chan struct{})
	if last, queued := m.turns.Swap(t, own); queued {
		before = last.(chan struct{})
	}
	return before, func() {
		m.turns.CompareAndDelete(t, own)
		close(own)
	}
}

// waitForTurn waits until before is closed or maxTurnWait has passed. It returns an error if ctx ends first.
func waitForTurn(ctx context.Context, before <-chan struct{}) error {
	timer := time.NewTimer(maxTurnWait)
	defer timer.Stop()
	select {
	case <-before:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
