package redispipe

import "time"

// Reader reads the values of a reply one after another.
type Reader struct {
	values  []any
	invalid bool // a value was missing or had another type
}

// Reader returns a reader of r.Values.
func (r Reply) Reader() Reader { return Reader{values: r.Values} }

func next[T int64 | string | []any](r *Reader) (v T) {
	if len(r.values) == 0 {
		r.invalid = true
		return v
	}
	v, ok := r.values[0].(T)
	r.values, r.invalid = r.values[1:], r.invalid || !ok
	return v
}

// Int reads an integer.
func (r *Reader) Int() int64 { return next[int64](r) }

// Text reads a string.
func (r *Reader) Text() string { return next[string](r) }

// Array returns a reader of a nested array.
func (r *Reader) Array() Reader { return Reader{values: next[[]any](r)} }

// Time reads a time in µs since 1970. 0 means the zero time.
func (r *Reader) Time() time.Time {
	if n := r.Int(); n != 0 {
		return time.UnixMicro(n)
	}
	return time.Time{}
}

// Duration reads a duration in µs.
func (r *Reader) Duration() time.Duration { return time.Duration(r.Int()) * time.Microsecond }

// Len returns the number of values that are left.
func (r *Reader) Len() int { return len(r.values) }

// Done reports whether all values have been read and had the expected types.
func (r *Reader) Done() bool { return !r.invalid && len(r.values) == 0 }
