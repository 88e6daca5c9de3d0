package session

import "context"

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
