package redisstore

import "time"

// reply is what a script returned. Its methods read the next value, and note in bad if that
// is missing or of another type.
type reply struct {
	values []any
	bad    bool
}

func next[T int64 | string](r *reply) (v T) {
	if len(r.values) == 0 {
		r.bad = true
		return v
	}
	v, ok := r.values[0].(T)
	r.values, r.bad = r.values[1:], r.bad || !ok
	return v
}

func (r *reply) int() int64     { return next[int64](r) }
func (r *reply) string() string { return next[string](r) }

// time reads a time in µs; zero for 0.
func (r *reply) time() time.Time {
	n := r.int()
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n)
}

// duration reads a number of µs.
func (r *reply) duration() time.Duration { return time.Duration(r.int()) * time.Microsecond }

// end returns an error if a value was not as it should be, or some are left.
func (r *reply) end() error {
	if r.bad || len(r.values) > 0 {
		return errUnreadable
	}
	return nil
}
