package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lazyreq/lazyreq/session/storage"
)

// A Field describes a session value with a name and a type. Make fields with [NewField], usually in package-level
// variables. A Field can be copied and is safe for concurrent use. Two fields with the same name refer to the same
// value in the session.
type Field[T any] struct {
	name  string
	codec Codec // nil for JSON
	guard bool  // set by FailOnConflict
}

// A Codec encodes a field's value into bytes and decodes it. Encode returns bytes that never change later. Decode
// fills the pointer v and neither keeps nor changes data. A Codec must be safe for concurrent use.
type Codec interface {
	Encode(v any) ([]byte, error)
	Decode(data []byte, v any) error
}

// NewField returns a field with this name that is encoded as JSON. It panics if the name is empty.
func NewField[T any](name string) Field[T] {
	if name == "" {
		panic("session: NewField without a name")
	}
	return Field[T]{name: name}
}

// WithCodec returns the field with another encoding. A nil Codec means JSON. The methods Get and Set of Session
// always use JSON.
func (f Field[T]) WithCodec(c Codec) Field[T] {
	f.codec = c
	return f
}

// FailOnConflict returns a field that does not allow concurrent requests to overwrite each other. By default, the last
// request that writes the field wins. With FailOnConflict, a save of this field fails with [ErrConflict] if the field
// was changed since the request loaded the session. Then nothing is saved, and the client gets a 409. If the change
// can be computed again, use Update instead.
func (f Field[T]) FailOnConflict() Field[T] {
	f.guard = true
	return f
}

// Get returns the field's value in the session of ctx's request, or the zero value if the field is not set. A value
// that cannot be decoded is logged and reads as the zero value.
func (f Field[T]) Get(ctx context.Context) (v T, err error) {
	st, val, err := Session{ctx: ctx}.value(f.name)
	if err == nil {
		v, _ = f.read(st, val)
	}
	return v, err
}

// Set encodes v and writes the field, as [Session.Set] does.
func (f Field[T]) Set(ctx context.Context, v T) error {
	data, err := f.encode(v)
	if err != nil {
		return err
	}
	return Session{ctx: ctx}.keepWrite(f.name, write{Change: storage.Change{Op: storage.OpSet, Value: data}, guard: f.guard})
}

// Delete removes the field, as [Session.Delete] does.
func (f Field[T]) Delete(ctx context.Context) error {
	return Session{ctx: ctx}.keepWrite(f.name, write{Change: storage.Change{Op: storage.OpDelete}, guard: f.guard})
}

// Update replaces the field's value in the store with the result of fn, at once. If another request has changed the
// field in the meantime, Update calls fn again with the new value. If fn fails, Update returns its error and changes
// nothing.
//
// Within a process, updates of the same field take turns, so that they rarely need a second try. Each try waits up to
// 50 ms for the earlier updates, or until ctx ends. Concurrent updates by the same request do not wait for each other.
// If many processes update a field all the time, Update gives up with [ErrConflict]. To count, use a [Counter], which
// costs less. fn may update other fields, but not this one.
//
// If the value cannot be decoded, this is logged, and fn gets the zero value. In a request without a session, or
// after its own earlier write of the field, fn gets the value that the request sees, and the result is saved with the
// other writes. Otherwise Update costs one store call, one more if it has waited for its turn, and two more for each
// further try.
func (f Field[T]) Update(ctx context.Context, fn func(T) (T, error)) error {
	st, err := Session{ctx: ctx}.loadForWrite("the update", f.name)
	if err != nil {
		return err
	}
	return st.update(ctx, f.name, func(old storage.Value) (storage.Value, error) {
		v, _ := f.read(st, old)
		v, err := fn(v)
		if err != nil {
			return storage.Value{}, err
		}
		data, err := f.encode(v)
		return storage.Value{Exists: true, Bytes: data}, err
	})
}

// Of returns the field's value in a listed session, or the zero value if there is none or it cannot be decoded.
func (f Field[T]) Of(i Info) (v T) {
	if i.lookup != nil {
		v, _, _ = f.decode(i.lookup(f.name))
	}
	return v
}

// read decodes a value of st's session. If that fails, read logs the error, and ok is false.
func (f Field[T]) read(st *state, val storage.Value) (v T, ok bool) {
	v, ok, err := f.decode(val)
	if err != nil {
		st.c.Logger().Warn("session: a field cannot be decoded and is ignored", "field", f.name, "error", err)
	}
	return v, ok
}

// decode decodes a value. ok is false if there is no value, or if it cannot be decoded.
func (f Field[T]) decode(val storage.Value) (v T, ok bool, err error) {
	switch {
	case !val.Exists:
		return v, false, nil
	case f.codec == nil:
		err = json.Unmarshal(val.Bytes, &v)
	default:
		err = f.codec.Decode(val.Bytes, &v)
	}
	if err != nil {
		v = *new(T) // a part of it may have been filled
	}
	return v, err == nil, err
}

func (f Field[T]) encode(v T) (data []byte, err error) {
	if f.codec == nil {
		data, err = json.Marshal(v)
	} else {
		data, err = f.codec.Encode(v)
	}
	if err != nil {
		return nil, fmt.Errorf("session: field %q cannot be encoded: %w", f.name, err)
	}
	return data, nil
}

// A Counter is a field that holds a whole number, from -[MaxCounter] to MaxCounter. Additions happen in the store, so
// that the additions of concurrent requests all count. Make counters with [NewCounter], usually in package-level
// variables. A Counter can be copied and is safe for concurrent use.
//
// The store keeps the number in decimal, so a Field[int64] with the same name and [Session.Get] can read it, too.
type Counter struct{ f Field[int64] }

// NewCounter returns the counter with this name. It panics if the name is empty.
func NewCounter(name string) Counter { return Counter{NewField[int64](name)} }

// Get returns the loaded number plus the request's own additions. A field that is not set reads as 0. A field that
// holds something else is logged and reads as 0.
func (c Counter) Get(ctx context.Context) (int64, error) { return c.f.Get(ctx) }

// Add adds n, which may be negative. A field that is not set counts as 0. Add returns [ErrNotCounter] if the field
// holds something else, or if the sum would be out of range.
func (c Counter) Add(ctx context.Context, n int64) error {
	return Session{ctx: ctx}.keepWrite(c.f.name, write{Change: storage.Change{Op: storage.OpAdd, N: n}})
}

// Delete removes the counter, which then counts from 0 again.
func (c Counter) Delete(ctx context.Context) error { return c.f.Delete(ctx) }

// A Flash is a session value that can be read only once, such as a message for the next page. Make it with
// [NewFlash]. A Flash can be copied and is safe for concurrent use.
type Flash[T any] struct{ f Field[T] }

// NewFlash returns a flash with this name that is encoded as JSON. It panics if the name is empty.
func NewFlash[T any](name string) Flash[T] { return Flash[T]{NewField[T](name)} }

// WithCodec returns the flash with another encoding than JSON.
func (f Flash[T]) WithCodec(c Codec) Flash[T] { return Flash[T]{f.f.WithCodec(c)} }

// Set stores v in place of an earlier value, as [Session.Set] does.
func (f Flash[T]) Set(ctx context.Context, v T) error { return f.f.Set(ctx, v) }

// Take returns the value and removes it; ok reports whether there was one. The value is removed at once, with a store
// call, so that only one of several concurrent requests gets it. A response that fails afterwards does not bring it
// back. A request whose secret was renewed may only read, so ok is false. A value that cannot be decoded is logged
// and removed, and ok is false.
func (f Flash[T]) Take(ctx context.Context) (v T, ok bool, err error) {
	st, val, err := Session{ctx: ctx}.take(f.f.name)
	if err == nil {
		v, ok = f.f.read(st, val)
	}
	return v, ok, err
}
