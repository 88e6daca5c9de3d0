package session

import (
	"context"
	"encoding/json"
	"errors"
)

// A Field is a session value with a name and a type. Make fields with NewField,
// usually in package-level variables; they are values and safe for concurrent use.
// Two fields of one name are the same value in the session.
type Field[T any] struct {
	name  string
	codec Codec
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
	return s.encode(ctx, f.name, f.codec, v)
}

// Delete removes the field, as Session.Delete does.
func (f Field[T]) Delete(ctx context.Context) error {
	s, err := f.session(ctx)
	if err != nil {
		return err
	}
	return s.change(ctx, f.name, Change{Op: OpDelete})
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
