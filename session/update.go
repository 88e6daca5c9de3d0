package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// updateTries is the maximum number of tries of an update. Of several concurrent tries, at least one succeeds, so an
// update needs that many only if many processes update the same field.
const updateTries = 64

// After earlyTries, an update pauses for a random time of up to maxPause before each try. Otherwise, the tries of two
// servers can stay in step, so that those of one server always come second.
const (
	earlyTries = 8
	maxPause   = 2 * time.Millisecond
)

// update replaces a field with the result of fn. It does not hold s.mu while fn runs.
func (s *state) update(ctx context.Context, name string, fn func(storage.Value) (storage.Value, error)) error {
	if name == "" {
		return errNoName
	}
	for try := range updateTries {
		if try >= earlyTries {
			if err := waitFor(ctx, nil, rand.N(maxPause)); err != nil {
				return err
			}
		}
		if done, err := s.tryUpdate(ctx, name, fn, try > 0); done || err != nil {
			return err
		}
	}
	return &Error{Action: "save", Err: ErrConflict}
}

// tryUpdate is one try of update. It reports whether the field was replaced. If stale is true, or if it had to wait for
// another update, it first reads a stored field again.
func (s *state) tryUpdate(ctx context.Context, name string, fn func(storage.Value) (storage.Value, error), stale bool) (bool, error) {
	if err := s.lockForWrite("the update", name); err != nil {
		return false, err
	}
	t, old, stored := s.snap.token, s.valueLocked(name), s.isStoredLocked(name)
	s.mu.Unlock()
	if stored && s.updating.CompareAndSwap(false, true) { // an inner update would wait for the outer one
		defer s.updating.Store(false)
		before, leave := s.m.enterQueue(turn{t.locator, name})
		defer leave()
		if before != nil {
			if err := waitFor(ctx, before, maxTurnWait); err != nil {
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

// take removes a field and returns its value. It returns no value if another request has removed the field first.
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
	if errors.Is(err, ErrGone) { // the session has ended, or the request's secret is an old one
		err = nil
	}
	return st, storage.Value{}, err
}

// compareAndSwap applies c to a field if the field still has the value old. It returns false if the field has changed,
// and ErrGone if the session no longer has the token t. A stored field is changed in the store at once. For any other
// field, the change is kept for the save.
func (s *state) compareAndSwap(ctx context.Context, t token, name string, old storage.Value, c storage.Change) (bool, error) {
	if stored, done, err := s.compareAndSwapLocal(t, name, old, c); !stored || err != nil {
		return done, err
	}
	d := s.newDelta(t)
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

// compareAndSwapLocal is compareAndSwap for a field that is not stored. If the field is stored, it only checks the size.
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
		// s.size includes the value that this request has loaded. old may be newer.
		return true, false, s.checkSizeLocked(name, s.valueLocked(name), after)
	case !s.valueLocked(name).Equal(old):
		return false, false, nil
	}
	// If the request has added to the field, old depends on the loaded number, which must not change before the save.
	return false, true, s.keepWriteLocked(name, write{Change: c, guard: s.writes[name].Op == storage.OpAdd})
}

// isStoredLocked reports whether the value of a field comes from the store. It returns false if the request has written
// the field, or if there is no stored session.
func (s *state) isStoredLocked(name string) bool {
	_, written := s.writes[name]
	return s.snap.exists && !written
}

// reloadField reads a field from the store. It does not change the snapshot.
func (s *state) reloadField(ctx context.Context, t token, name string) (storage.Value, error) {
	rec, err := s.m.store.Load(ctx, t.locator, t.digest, s.limits())
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

// enterQueue enters the queue for t. before is closed when the previous update leaves the queue, and nil if the queue was
// empty. The caller must call leave when it no longer needs the turn.
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

// waitFor waits until done is closed or limit has passed. It returns an error if ctx ends first.
func waitFor(ctx context.Context, done <-chan struct{}, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
