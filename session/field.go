package session

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/lazyreq/lazyreq/session/storage"
)

// A Field is a session value with a name and a type. Make fields with NewField,
// usually in package-level variables; they are values and safe for concurrent use.
// Two fields of one name are the same value in the session.
type Field[T any] struct {
	name  string
	codec Codec
	guard bool // FailOnConflict
}

// A Codec turns a field's value into bytes and back. Encode returns bytes that
// nobody changes later; Decode fills the pointer v and neither keeps nor changes
// data. Both may be called concurrently.
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
	return Field[T]{name: name, codec: jsonCodec{}}
}

// WithCodec returns the field with another encoding than JSON. The dynamic Get
// and Set of Session know only JSON.
func (f Field[T]) WithCodec(c Codec) Field[T] {
	f.codec = c
	return f
}

// FailOnConflict returns the field with another way to deal with concurrent
// requests. By default the last one that writes the field wins. With it, a save of
// this field fails with ErrConflict, and saves nothing else either, if the field was
// changed since the request loaded the session; the client gets a 409. Where the
// change can be made again, use Update instead.
func (f Field[T]) FailOnConflict() Field[T] {
	f.guard = true
	return f
}

// Get returns the field's value in the session of ctx's request; the zero value if
// there is none. A value that cannot be decoded is logged and reads as the zero
// value: it doesn't end the session.
func (f Field[T]) Get(ctx context.Context) (T, error) {
	var zero, v T
	s, err := f.session(ctx)
	if err != nil {
		return zero, err
	}
	if ok, err := s.decode(ctx, f.name, f.codec, &v); !ok {
		return zero, err
	}
	return v, nil
}

// Set encodes v and writes the field, as Session.Set does.
func (f Field[T]) Set(ctx context.Context, v T) error {
	s, err := f.session(ctx)
	if err != nil {
		return err
	}
	return s.encode(ctx, f.name, f.codec, v, f.guard)
}

// Delete removes the field, as Session.Delete does.
func (f Field[T]) Delete(ctx context.Context) error {
	s, err := f.session(ctx)
	if err != nil {
		return err
	}
	return s.write(ctx, f.name, write{Change: storage.Change{Op: storage.OpDelete}, guard: f.guard})
}

// Update replaces the value of the field by what fn makes of it, at once, and only
// if nobody else has changed it meanwhile; otherwise it begins again with the new
// value, so that fn may run several times. It returns the error of fn, and changes
// nothing then. Against very many others it gives up with ErrConflict. For numbers
// that are only counted, a Counter costs less.
//
// A value that cannot be decoded is logged and is the zero value to fn. In a request
// without session, or over its own earlier write of the field, fn runs on what is
// there and the result is saved with the rest.
//
// It costs one store call, and two more for each time that it begins again.
func (f Field[T]) Update(ctx context.Context, fn func(T) (T, error)) error {
	s, err := f.session(ctx)
	if err != nil {
		return err
	}
	return s.update(ctx, f.name, func(old storage.Value) (storage.Value, error) {
		var zero, v T
		if old.Exists && !s.decodeValue(f.name, old, f.codec, &v) {
			v = zero
		}
		v, err := fn(v)
		if err != nil {
			return storage.Value{}, err
		}
		data, err := encodeField(f.name, f.codec, v)
		return storage.Value{Exists: true, Bytes: data}, err
	})
}

// Of returns the field's value in a session of a list, the zero value if there is
// none or it cannot be decoded.
func (f Field[T]) Of(i Info) T {
	var zero, v T
	data := storage.Lookup(i.fields, f.name)
	if !data.Exists || f.codec == nil || f.codec.Decode(data.Bytes, &v) != nil {
		return zero
	}
	return v
}

func (f Field[T]) session(ctx context.Context) (*Session, error) {
	if f.codec == nil {
		return nil, errors.New("session: a Field is made by NewField and has a codec")
	}
	return From(ctx)
}

// jsonCodec is the default.
type jsonCodec struct{}

func (jsonCodec) Encode(v any) ([]byte, error)    { return json.Marshal(v) }
func (jsonCodec) Decode(data []byte, v any) error { return json.Unmarshal(data, v) }
