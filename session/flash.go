package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/session/storage"
)

// A Flash is a value that is read once: a message that one request leaves for the
// page after it. Make it with NewFlash; it is a value, safe for concurrent use.
type Flash[T any] struct{ f Field[T] }

// NewFlash returns the flash of that name, encoded as JSON. It panics if the name is
// empty.
func NewFlash[T any](name string) Flash[T] { return Flash[T]{NewField[T](name)} }

// WithCodec returns the flash with another encoding than JSON.
func (f Flash[T]) WithCodec(c Codec) Flash[T] { return Flash[T]{f.f.WithCodec(c)} }

// Set leaves v, in place of what was not read yet, as Session.Set does.
func (f Flash[T]) Set(ctx context.Context, v T) error { return f.f.Set(ctx, v) }

// Take returns the value and removes it; ok says whether there was one. Of
// concurrent requests exactly one gets it, because it is removed at once: a response
// that fails afterwards does not bring it back. That costs a store call, where there
// is a value. A request with a renewed secret, which may only read, finds none. A
// value that cannot be decoded is logged, removed, and counts as none.
func (f Flash[T]) Take(ctx context.Context) (v T, ok bool, err error) {
	var zero T
	s, err := f.f.session(ctx)
	if err != nil {
		return zero, false, err
	}
	val, err := s.take(ctx, f.f.name)
	if err != nil || !val.Exists || !s.decodeValue(f.f.name, val, f.f.codec, &v) {
		return zero, false, err
	}
	return v, true, nil
}

// Take returns the value of a field, as Get does, and removes it as Flash.Take does.
func (s *Session) Take(name string) (any, error) {
	val, err := s.take(s.c, name)
	var v any
	if err != nil || !val.Exists || !s.decodeValue(name, val, jsonCodec{}, &v) {
		return nil, err
	}
	return v, nil
}

// take gets hold of a field that nobody else has taken.
func (s *Session) take(ctx context.Context, name string) (storage.Value, error) {
	doing := fmt.Sprintf("the taking of field %q", name)
	snap, err := s.writable(ctx, doing)
	if errors.Is(err, ErrGone) { // its secret is an old one: it takes nothing, and may go on
		return storage.Value{}, nil
	}
	if err != nil {
		return storage.Value{}, err
	}
	v, own, err := s.takeOwn(snap, name, doing)
	if own || err != nil || !v.Exists {
		return v, err
	}
	d := s.m.delta(snap.token)
	d.ExpectField(name, v)
	d.Changes = map[string]storage.Change{name: {Op: storage.OpDelete}}
	err = s.m.store.Commit(ctx, d)
	if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrGone) {
		return storage.Value{}, &Error{Action: "save", Err: err}
	}
	s.learn(snap, name, storage.Value{})
	if err != nil { // somebody else was first
		return storage.Value{}, nil
	}
	return v, nil
}

// takeOwn returns a field, and removes it here if it is only this request's yet.
func (s *Session) takeOwn(snap *snapshot, name, doing string) (v storage.Value, own bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lateLocked() {
		return storage.Value{}, false, committed(doing)
	}
	v = s.valueLocked(snap, name)
	w, own := s.writes[name]
	if !own || !v.Exists {
		return v, own || !s.liveLocked(snap), nil
	}
	return v, true, s.writeLocked(snap, name, write{Change: storage.Change{Op: storage.OpDelete}, guard: w.guard})
}
