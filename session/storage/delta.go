package storage

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
)

// A Delta is the changes of one request to one session. The zero Delta is not
// valid. It formats and logs as "[redacted]".
type Delta struct {
	redacted
	Locator Locator
	Digest  Digest            // of the secret that the writer has; for Create, of the new session
	Create  bool              // make the session; otherwise it must exist
	Rotate  Digest            // replaces the stored digest; zero keeps it; not with Create
	Grace   time.Duration     // with Rotate: how long the replaced digest still loads; 0 means not at all
	Bind    string            // with Rotate or Create, without Grace: the user to bind the session to
	Expect  map[string]Value  // fields that must have these values; not with Create
	Changes map[string]Change // by field; a name is any bytes, at least one
	Limits  Limits
}

// A Value is the stored value of a field, or none. It formats and logs as "[redacted]".
type Value struct {
	redacted
	Exists bool
	Bytes  []byte // read-only; meaningless unless Exists
}

// A Change is the change of one field.
type Change struct {
	Op    Op
	Value []byte // for OpSet; may be empty; the store keeps no reference to it
	N     int64  // for OpAdd: the number to add, from -MaxCounter to MaxCounter
}

// An Op is the kind of a [Change].
type Op uint8

const (
	OpSet    Op = iota + 1 // replace or add the value; the last commit wins
	OpDelete               // remove the field, if it exists
	OpAdd                  // add to a whole number in decimal; a missing field is 0
)

// MaxCounter is the largest number that a counter holds, and -MaxCounter the
// smallest: they are exact in every JSON decoder and in Lua.
const MaxCounter = 1<<53 - 1

// ExpectField adds a field to Expect.
func (d *Delta) ExpectField(name string, v Value) {
	if d.Expect == nil {
		d.Expect = make(map[string]Value)
	}
	d.Expect[name] = v
}

// Validate returns an error if the delta is malformed: an unknown Op, a field
// without a name, limits that are not positive, or fields of Delta that exclude each
// other. Stores call it first.
func (d Delta) Validate() error {
	switch {
	case d.Limits.Idle <= 0 || d.Limits.Absolute <= 0:
		return errors.New("session: delta without limits")
	case d.Create && (d.Rotate != Digest{} || len(d.Expect) > 0):
		return errors.New("session: delta with Create, and Rotate or Expect")
	case d.Grace < 0 || d.Grace > 0 && (d.Rotate == Digest{} || d.Bind != ""):
		return errors.New("session: delta with a negative Grace, or one without Rotate or with Bind")
	case d.Bind != "" && !d.Create && d.Rotate == Digest{}:
		return errors.New("session: delta with Bind, without Create or Rotate")
	}
	for name, c := range d.Changes {
		if err := c.validate(name); err != nil {
			return err
		}
	}
	if _, nameless := d.Expect[""]; nameless {
		return errors.New("session: delta with a nameless field in Expect")
	}
	return nil
}

func (c Change) validate(name string) error {
	switch {
	case name == "":
		return errors.New("session: delta with a nameless field")
	case c.Op < OpSet || c.Op > OpAdd:
		return fmt.Errorf("session: field %q: unknown op %d", name, c.Op)
	case c.Op == OpAdd && !Countable(c.N):
		return option.Prefix(fmt.Sprintf("session: field %q: ", name), "session", ErrNotCounter)
	}
	return nil
}

// Countable reports whether a counter can hold n.
func Countable(n int64) bool { return -MaxCounter <= n && n <= MaxCounter }

// Equal reports whether v and w are the same.
func (v Value) Equal(w Value) bool {
	return v.Exists == w.Exists && (!v.Exists || string(v.Bytes) == string(w.Bytes))
}

// Counter returns the number that the field holds, 0 for none. It accepts only the text
// that OpAdd writes for a number, so that all stores agree.
func (v Value) Counter() (int64, error) {
	if !v.Exists {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(v.Bytes), 10, 64)
	if err != nil || !Countable(n) || strconv.FormatInt(n, 10) != string(v.Bytes) {
		return 0, ErrNotCounter
	}
	return n, nil
}

// Apply returns the field after the change.
func (c Change) Apply(v Value) (Value, error) {
	switch c.Op {
	case OpSet:
		return Value{Exists: true, Bytes: c.Value}, nil
	case OpAdd:
		n, err := v.Counter()
		if err != nil || !Countable(n+c.N) {
			return v, ErrNotCounter
		}
		return Value{Exists: true, Bytes: strconv.AppendInt(nil, n+c.N, 10)}, nil
	default:
		return Value{}, nil
	}
}

// Lookup returns the value of a field.
func Lookup(fields map[string][]byte, name string) Value {
	b, ok := fields[name]
	return Value{Exists: ok, Bytes: b}
}

// Meets reports whether the fields have the values of Expect.
func (d Delta) Meets(fields map[string][]byte) bool {
	for name, want := range d.Expect {
		if !Lookup(fields, name).Equal(want) {
			return false
		}
	}
	return true
}

// Apply returns the fields after the delta's changes, which share no bytes with the
// delta. It doesn't change old.
func (d Delta) Apply(old map[string][]byte) (map[string][]byte, error) {
	if len(d.Changes) == 0 {
		return old, nil
	}
	fields := make(map[string][]byte, len(old)+len(d.Changes))
	maps.Copy(fields, old)
	for name, c := range d.Changes {
		v, err := c.Apply(Lookup(old, name))
		switch {
		case err != nil:
			return nil, err
		case v.Exists:
			fields[name] = append([]byte{}, v.Bytes...)
		default:
			delete(fields, name)
		}
	}
	return fields, nil
}
