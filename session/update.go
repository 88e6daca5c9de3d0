package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lazyreq/lazyreq/internal/errtext"
	"github.com/lazyreq/lazyreq/session/storage"
)

// An update is tried at most updateTries times. Of n concurrent updates, one succeeds at
// a time; the pauses, which double, spread the others.
const (
	updateTries = 14
	firstPause  = time.Millisecond
	maxPause    = 64 * time.Millisecond
)

// update replaces a field by the result of fn, which is called without a lock.
func (s *Session) update(ctx context.Context, name string, fn func(storage.Value) (storage.Value, error)) error {
	for try := range updateTries {
		if err := backOff(ctx, try); err != nil {
			return err
		}
		if err := s.lockForWrite(ctx, "the update", name); err != nil {
			return err
		}
		t, old := s.snap.token, s.valueLocked(name)
		s.mu.Unlock()
		value, err := fn(old)
		if err != nil {
			return err
		}
		done, err := s.compareAndSwap(ctx, t, name, old, storage.Change{Op: storage.OpSet, Value: value.Bytes})
		if done || err != nil {
			return err
		}
	}
	return &Error{Action: "save", Err: ErrConflict}
}

// backOff waits before each try but the first two: the second has the newest value
// and often succeeds.
func backOff(ctx context.Context, try int) error {
	if try < 2 {
		return nil
	}
	t := time.NewTimer(rand.N(min(firstPause<<(try-2), maxPause)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take returns a field's value and removes it, unless another request did so first.
func (s *Session) take(ctx context.Context, name string) (storage.Value, error) {
	err := s.lockForWrite(ctx, "Take", name)
	if err == nil {
		t, v := s.snap.token, s.valueLocked(name)
		s.mu.Unlock()
		if !v.Exists {
			return v, nil
		}
		var done bool
		if done, err = s.compareAndSwap(ctx, t, name, v, storage.Change{Op: storage.OpDelete}); done {
			return v, nil
		}
	}
	if errors.Is(err, ErrGone) { // the session ended, or its secret is an old one, which may only read
		err = nil
	}
	return storage.Value{}, err
}

// compareAndSwap applies c to a field, if the field is still old and the session still the one
// of t. A field that only this request has, or has written, is swapped here and saved
// with the other writes; any other in the store, at once. If the field was changed
// meanwhile, compareAndSwap returns false, and the session has the new value.
func (s *Session) compareAndSwap(ctx context.Context, t token, name string, old storage.Value, c storage.Change) (bool, error) {
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
		return false, s.reloadField(ctx, t, name)
	}
	return false, &Error{Action: "save", Err: err}
}

// compareAndSwapLocal swaps a field that isn't the store's yet; local reports whether it was one.
func (s *Session) compareAndSwapLocal(t token, name string, old storage.Value, c storage.Change) (local, done bool, err error) {
	if err := s.lockForWrite(s.c, "the update", name); err != nil {
		return true, false, err
	}
	defer s.mu.Unlock()
	if s.snap.token != t {
		return true, false, &Error{Action: "save", Err: ErrGone}
	}
	w, written := s.writes[name]
	if !written && s.snap.exists {
		after, _ := c.Apply(old)
		if err = s.checkSizeLocked(name, old, after); err != nil {
			err = errtext.Prefix(fmt.Sprintf("session: field %q: ", name), "session", err)
		}
		return false, false, err
	}
	if !s.valueLocked(name).Equal(old) {
		return true, false, nil
	}
	// After an addition, old depends on the number that was loaded.
	return true, true, s.keepWriteLocked(name, write{Change: c, guard: w.Op == storage.OpAdd})
}

// reloadField reads one field from the store. The others stay as they were loaded.
func (s *Session) reloadField(ctx context.Context, t token, name string) error {
	rec, err := s.m.store.Load(ctx, t.locator, t.digest(), s.m.limits)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return &Error{Action: "save", Err: ErrGone}
	case err != nil:
		return &Error{Action: "load", Err: err}
	}
	s.updateSnapshot(name, storage.Lookup(rec.Fields, name))
	return nil
}
