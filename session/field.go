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
// retry: each try waits at most 50 ms for the ones before it, or until ctx ends. Updates of
// one request at the same time do not wait for one another. An update within fn is repeated
// with fn; if it is of the same field, the outer one can only fail. If many processes update a field all the time,
// Update gives up with [ErrConflict]. To count, a [Counter] costs less.
//
// A value that cannot be decoded is logged and is the zero value to fn. In a request
// without session, or after its own earlier write of the field, fn runs on the value that
// the request sees, and the result is saved with the other writes.
//
// Update costs one store call, one more if it has waited for its turn, and two more for
// each retry.
func (f Field[T]) Update(ctx context.Context, fn func(T) (T, error)) error {
	st, err := Session{ctx: ctx}.loadForWrite("the update", f.name)
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

// A Counter is a field that holds a whole number, from -[MaxCounter] to MaxCounter.
// The store adds to it, so that concurrent requests all count. Make counters with
// [NewCounter], usually in package-level variables; they are values and safe for
// concurrent use.
//
// The store keeps the number in decimal, so a Field[int64] of the same name, and Get
// and Add of [Session], can use it too.
type Counter struct{ f Field[int64] }

// NewCounter returns the counter of that name. It panics if the name is empty.
func NewCounter(name string) Counter { return Counter{NewField[int64](name)} }

// Get returns the number that this request sees: the loaded one and what the request
// added. It is 0 if there is none. A field that holds something else is
// logged and reads as 0.
func (c Counter) Get(ctx context.Context) (int64, error) { return c.f.Get(ctx) }

// Add adds n, which may be negative, as [Session.Add] does.
func (c Counter) Add(ctx context.Context, n int64) error {
	return Session{ctx: ctx}.keepWrite(c.f.name, write{Change: storage.Change{Op: storage.OpAdd, N: n}})
}

// Delete removes the counter, which counts on from 0.
func (c Counter) Delete(ctx context.Context) error { return c.f.Delete(ctx) }

// A Flash is a value that is read once: a message that one request leaves for the
// next page. Make it with [NewFlash]; it is a value, safe for concurrent use.
type Flash[T any] struct{ f Field[T] }

// NewFlash returns the flash of that name, encoded as JSON. It panics if the name is
// empty.
func NewFlash[T any](name string) Flash[T] { return Flash[T]{NewField[T](name)} }

// WithCodec returns the flash with another encoding than JSON.
func (f Flash[T]) WithCodec(c Codec) Flash[T] { return Flash[T]{f.f.WithCodec(c)} }

// Set leaves v, in place of an earlier value, as [Session.Set] does.
func (f Flash[T]) Set(ctx context.Context, v T) error { return f.f.Set(ctx, v) }

// Take returns the value and removes it; ok reports whether there was one. Of
// concurrent requests exactly one gets it, because it is removed at once: a response
// that fails afterwards does not bring it back. That costs a store call if there
// is a value. A request with a renewed secret, which may only read, finds none. A
// value that cannot be decoded is logged, removed, and counts as none.
func (f Flash[T]) Take(ctx context.Context) (v T, ok bool, err error) {
	var zero T
	st, val, err := Session{ctx: ctx}.take(f.f.name)
	if err != nil || !st.decode(f.f.name, val, f.f.codec, &v) {
		return zero, false, err
	}
	return v, true, nil
}
