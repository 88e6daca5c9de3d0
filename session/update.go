package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// updateTries is how often an update is tried. Of n that meet, one gets through at a
// time; the pauses, which double, have the others come at different moments.
const (
	updateTries = 14
	firstPause  = time.Millisecond
	longestWait = 64 * time.Millisecond
)

// update replaces a field by what fn makes of it. fn is called without a lock.
func (s *Session) update(ctx context.Context, name string, fn func(storage.Value) (storage.Value, error)) error {
	if name == "" {
		return errors.New("session: a field needs a name")
	}
	doing := fmt.Sprintf("the update of field %q", name)
	snap, err := s.writable(ctx, doing)
	if err != nil {
		return err
	}
	for try := range updateTries {
		if err := pause(ctx, try); err != nil {
			return err
		}
		old, own := s.base(snap, name)
		value, err := fn(old)
		if err != nil {
			return err
		}
		done := false
		if own {
			done, err = s.replaceOwn(snap, name, doing, old, value)
		} else {
			done, err = s.replaceStored(ctx, snap, name, doing, old, value)
		}
		if done || err != nil {
			return err
		}
	}
	return &Error{Action: "save", Err: ErrConflict}
}

// pause waits before all tries but the first two: the second has the newest value,
// and a fair chance.
func pause(ctx context.Context, try int) error {
	if try < 2 {
		return nil
	}
	t := time.NewTimer(rand.N(min(firstPause<<(try-2), longestWait)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// base returns the value to update, and whether it is only this request's yet.
func (s *Session) base(snap *snapshot, name string) (old storage.Value, own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, written := s.writes[name]
	return s.valueLocked(snap, name), written || !s.liveLocked(snap)
}

// replaceOwn makes the update one of the request's writes. It says false if another
// goroutine has changed the value meanwhile.
func (s *Session) replaceOwn(snap *snapshot, name, doing string, old, value storage.Value) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lateLocked() {
		return false, committed(doing)
	}
	if !s.valueLocked(snap, name).Equal(old) {
		return false, nil
	}
	// Over an addition, the result depends on the number that was loaded.
	guard := s.writes[name].Op == storage.OpAdd
	return true, s.writeLocked(snap, name, write{Change: storage.Change{Op: storage.OpSet, Value: value.Bytes}, guard: guard})
}

// replaceStored has the store compare and set. If it says false, the session knows
// the new value.
func (s *Session) replaceStored(ctx context.Context, snap *snapshot, name, doing string, old, value storage.Value) (bool, error) {
	if err := s.mayReplace(snap, name, doing, old, value); err != nil {
		return false, err
	}
	d := s.m.delta(snap.token)
	d.ExpectField(name, old)
	d.Changes = map[string]storage.Change{name: {Op: storage.OpSet, Value: value.Bytes}}
	err := s.m.store.Commit(ctx, d)
	switch {
	case err == nil:
		s.learn(snap, name, value)
		return true, nil
	case errors.Is(err, ErrConflict):
		return false, s.reload(ctx, snap, name)
	default:
		return false, &Error{Action: "save", Err: err}
	}
}

func (s *Session) mayReplace(snap *snapshot, name, doing string, old, value storage.Value) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lateLocked() {
		return committed(doing)
	}
	if s.ended {
		return &Error{Action: "save", Err: ErrGone}
	}
	if err := s.fitsLocked(snap, name, old, value); err != nil {
		return fmt.Errorf("session: field %q: %w", name, err)
	}
	return nil
}

// reload asks the store for one field. The others stay as they were loaded.
func (s *Session) reload(ctx context.Context, snap *snapshot, name string) error {
	rec, err := s.m.store.Load(ctx, snap.token.locator, snap.token.digest(), s.m.limits)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return &Error{Action: "save", Err: ErrGone}
	case err != nil:
		return &Error{Action: "load", Err: err}
	}
	s.learn(snap, name, storage.Lookup(rec.Fields, name))
	return nil
}

func (s *Session) learn(snap *snapshot, name string, v storage.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learnLocked(snap, name, v)
}
