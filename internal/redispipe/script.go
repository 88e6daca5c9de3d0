package redispipe

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"time"
)

// Script is a Lua script. It is immutable.
type Script struct {
	src, sha string
	ints     bool
}

// NewScript returns a script with the source src whose reply is an array. The array must not contain errors, because
// go-redis may stop reading at an error and then mistake the rest of the array for replies to other calls.
func NewScript(src string) *Script {
	sum := sha1.Sum([]byte(src)) // the name of a script in Redis
	return &Script{src: src, sha: hex.EncodeToString(sum[:])}
}

// ReadScript returns a script whose source is the concatenated contents of files. It panics if a file is missing.
func ReadScript(from embed.FS, files ...string) *Script {
	var src []byte
	for _, name := range files {
		content, err := from.ReadFile(name)
		if err != nil {
			panic(err)
		}
		src = append(src, content...)
	}
	return NewScript(string(src))
}

// NewIntScript returns a script with the source src whose reply is an array of integers.
func NewIntScript(src string) *Script {
	s := NewScript(src)
	s.ints = true
	return s
}

// Source returns the script's source.
func (s *Script) Source() string { return s.src }

// Batch is a script that does the same for each of its keys, such as a take with the same rule. Calls with the same pointer
// to a Batch share an EVALSHA:
//
//	KEYS   the keys
//	ARGV   Args, and then for each key N and the number of equal calls, unless all of these are 1
//	Reply  an integer that all calls share, such as the time, and then Width integers for each key
//
// The script must not raise an error because of a single key, since all calls would fail.
type Batch struct {
	Script *Script // made by NewIntScript
	Args   []any   // strings and numbers; they must not change
	Width  int
	Max    int  // maximum number of keys in an EVALSHA, during which Redis does nothing else
	Join   bool // equal calls for the same key are joined into a single entry
}

// Reader reads the values of a reply one after another.
type Reader struct {
	values  []any
	invalid bool // a value was missing or had an unexpected type
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

// Time reads a time in µs since 1970. Zero means the zero time.
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
