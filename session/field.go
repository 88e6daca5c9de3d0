package session

import (
	"context"

	"github.com/lazyreq/lazyreq/session/storage"
)

// A Field is a session value with a name and a type. Make fields with [NewField],
// usually in package-level variables; they are values and safe for concurrent use.
// Two fields of one name are the same value in the session.
type Field[T any] struct {
	name  string
	codec Codec // nil for JSON
	guard bool  // FailOnConflict
}

// A Codec encodes a field's value into bytes and decodes it. Encode returns bytes that
// never change later; Decode fills the pointer v and neither keeps nor changes
// data. A Codec must be safe for concurrent use.
type Codec interface {
	Encode(v any) ([]byte, error)
	Decode(data []byte, v any) error
}

// NewField returns the field of that name, encoded as JSON. It panics if the
// name is empty.
func NewField[T any](name string) Field[T] {
	if name == "" {
		panic("session: NewField without a name")
	}
	return Field[T]{name: name}
}

// WithCodec returns the field with another encoding than JSON; a nil Codec means JSON.
// The dynamic Get and Set of Session always use JSON.
func (f Field[T]) WithCodec(c Codec) Field[T] {
	f.codec = c
	return f
}

// FailOnConflict returns the field with another way to deal with concurrent
// requests. By default the last one that writes the field wins. With FailOnConflict, a
// save of this field fails with [ErrConflict], and saves nothing else either, if the
// field was changed since the request loaded the session; the client gets a 409. If the
// change can be computed again, use Update instead.
func (f Field[T]) FailOnConflict() Field[T] {
	f.guard = true
	return f
}

// Get returns the field's value in the session of ctx's request; the zero value if
// there is none. A value that cannot be decoded is logged and reads as the zero
// value: it doesn't end the session.
func (f Field[T]) Get(ctx context.Context) (T, error) {
	var zero, v T
	st, val, err := Session{ctx: ctx}.value(f.name)
	if err != nil || !st.decode(f.name, val, f.codec, &v) {
		return zero, err
	}
	return v, nil
}

// Set encodes v and writes the field, as [Session.Set] does.
func (f Field[T]) Set(ctx context.Context, v T) error {
	return Session{ctx: ctx}.encode(f.name, f.codec, v, f.guard)
}

// Delete removes the field, as [Session.Delete] does.
func (f Field[T]) Delete(ctx context.Context) error {
	return Session{ctx: ctx}.keepWrite(f.name, write{Change: storage.Change{Op: storage.OpDelete}, guard: f.guard})
}

// Update replaces the value of the field by the result of fn, at once, and only
// if no other request has changed it meanwhile; otherwise it retries with the new
// value, so that fn may run several times. It returns the error of fn, and changes
// nothing then. Updates of one field in one process take turns, so that they rarely
// retry: each try waits at most 50 ms for the ones before it, or until ctx ends, and an
// update within another one does not wait. If many processes update a field all the time,
// Update gives up with [ErrConflict]. To count, a [Counter] costs less.
//
// A value that cannot be decoded is logged and is the zero value to fn. In a request
// without session, or after its own earlier write of the field, fn runs on the value that
// the request sees, and the result is saved with the other writes.
//
// Update costs one store call, one more if it has waited for its turn, and two more for
// each retry.
func (f Field[T]) Update(ctx context.Context, fn func(T) (T, error)) error {
	st, err := Session{ctx: ctx}.load()
	if err != nil {
		return err
	}
	return st.update(ctx, f.name, func(old storage.Value) (storage.Value, error) {
		var zero, v T
		if !st.decode(f.name, old, f.codec, &v) {
			v = zero
		}
		v, err := fn(v)
		if err != nil {
			return storage.Value{}, err
		}
		data, err := encodeValue(f.name, f.codec, v)
		return storage.Value{Exists: true, Bytes: data}, err
	})
}

// Of returns the field's value in a listed session; the zero value if there is
// none or it cannot be decoded.
func (f Field[T]) Of(i Info) T {
	var zero, v T
	if i.lookup == nil {
		return zero
	}
	val := i.lookup(f.name)
	if !val.Exists || decodeValue(val.Bytes, f.codec, &v) != nil {
		return zero
	}
	return v
}
