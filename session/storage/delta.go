package storage

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"
)

// A Delta is what one request changes in one session. The zero Delta is not
// valid. It formats and logs as "[redacted]".
type Delta struct {
	redacted
	Locator Locator
	Digest  Digest            // of the secret that the writer holds; for Create, of the new session
	Create  bool              // make the session; otherwise it must be there
	Rotate  Digest            // replaces the stored digest; zero keeps it; not with Create
	Grace   time.Duration     // with Rotate: so long the replaced digest still loads; 0 for not at all
	Bind    string            // with Rotate or Create, without Grace: whose session it is from now on
	Expect  map[string]Value  // fields that must be found like this; not with Create
	Changes map[string]Change // by field; a name is any bytes, at least one
	Limits  Limits
}

// A Value is a field as it is stored, or is not.
type Value struct {
	redacted
	Exists bool
	Bytes  []byte // read-only; of no meaning unless Exists
}

// A Change is what a Delta does to one field.
type Change struct {
	Op    Op
	Value []byte // for OpSet; may be empty; the store keeps no reference to it
	N     int64  // for OpAdd: what to add, at most MaxCounter either way
}

// An Op is what a Change does to its field. A store refuses one that it doesn't
// know with an error that names it, before it changes anything.
type Op uint8

const (
	OpSet    Op = iota + 1 // replace or add the value; the last commit wins
	OpDelete               // remove the field, if it is there
	OpAdd                  // add to the whole number that it holds in decimal; a missing field is 0
)

// MaxCounter is the largest number that a counter holds, and -MaxCounter the
// smallest: what is exact in every JSON decoder and in Lua.
const MaxCounter = 1<<53 - 1

// ExpectField adds to Expect.
func (d *Delta) ExpectField(name string, v Value) {
	if d.Expect == nil {
		d.Expect = make(map[string]Value)
	}
	d.Expect[name] = v
}

// Validate returns an error if the delta is malformed: an unknown Op, a field
// without a name, Idle or Absolute not above zero, or members that don't go
// together. Stores call it first.
func (d Delta) Validate() error {
	switch {
	case d.Limits.Idle <= 0 || d.Limits.Absolute <= 0:
		return errors.New("session: delta without limits")
	case d.Create && (d.Rotate != Digest{} || len(d.Expect) > 0):
		return errors.New("session: delta that creates, and rotates or expects")
	case d.Grace < 0 || d.Grace > 0 && (d.Rotate == Digest{} || d.Bind != ""):
		return errors.New("session: delta with a grace that it cannot give")
	case d.Bind != "" && !d.Create && d.Rotate == Digest{}:
		return errors.New("session: delta that binds and keeps the secret")
	}
	for name, c := range d.Changes {
		if err := c.validate(name); err != nil {
			return err
		}
	}
	if _, nameless := d.Expect[""]; nameless {
		return errors.New("session: delta that expects a nameless field")
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
		return fmt.Errorf("session: field %q: %w", name, ErrNotCounter)
	}
	return nil
}

// Countable reports whether a counter can hold n.
func Countable(n int64) bool { return -MaxCounter <= n && n <= MaxCounter }

// Equal reports whether a field is the same.
func (v Value) Equal(w Value) bool {
	return v.Exists == w.Exists && (!v.Exists || string(v.Bytes) == string(w.Bytes))
}

// Counter returns the number that the field holds. Only the one text that OpAdd
// writes for a number is one, so that all stores agree.
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

// Apply returns what the change makes of a field.
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

// Lookup returns a field of a table.
func Lookup(fields map[string][]byte, name string) Value {
	b, ok := fields[name]
	return Value{Exists: ok, Bytes: b}
}

// Meets reports whether a table of fields is what the delta expects.
func (d Delta) Meets(fields map[string][]byte) bool {
	for name, want := range d.Expect {
		if !Lookup(fields, name).Equal(want) {
			return false
		}
	}
	return true
}

// Apply returns the fields with the delta's changes made, in a new map that shares
// no bytes with the delta.
func (d Delta) Apply(old map[string][]byte) (map[string][]byte, error) {
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
