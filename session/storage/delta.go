package storage

import (
	"maps"
	"strconv"
	"time"
)

// A Delta holds the changes that a request makes to a session. Package session has checked it. It formats as
// "[redacted]".
type Delta struct {
	redacted
	Locator    Locator
	Digest     Digest            // of the writer's secret; with Create, of the new session's
	Create     bool              // creates the session; otherwise it must exist
	Rotate     Digest            // replaces the stored digest; the zero Digest keeps it; not with Create
	Grace      time.Duration     // with Rotate: how long the replaced digest still loads; 0 means not at all
	Bind       string            // the user to bind to, at most MaxUser bytes; with Create, or with Rotate but without Grace
	Remember   bool              // with Bind: whether Limits.Remembered applies from now on
	MaxPerUser int               // with Bind: how many sessions of the user to keep, the last to be bound; 0 keeps all
	Expect     map[string]Value  // fields that must have these values; not with Create
	Changes    map[string]Change // by field; a name is any bytes, at least one
	Limits     Limits            // Idle and Absolute are positive
}

// A Value is the stored value of a field, or no value. It formats as "[redacted]".
type Value struct {
	redacted
	Exists bool
	Bytes  []byte // read-only; meaningless unless Exists
}

// A Change describes the change of a field.
type Change struct {
	Op    Op
	Value []byte // for OpSet; may be empty; the store keeps no reference to it
	N     int64  // for OpAdd: the number to add, from -MaxCounter to MaxCounter
}

// An Op is the kind of a [Change].
type Op uint8

const (
	OpSet    Op = iota + 1 // sets the value; the last commit wins
	OpDelete               // removes the field, if it exists
	OpAdd                  // adds to a whole number in decimal; a missing field is 0
)

const (
	// MaxCounter is the largest number that a counter holds, and -MaxCounter the smallest. Every JSON decoder and
	// Lua represent them exactly.
	MaxCounter = 1<<53 - 1
	// MaxUser is the maximum length of a user in bytes.
	MaxUser = 1 << 10
)

// Countable reports whether a counter can hold n.
func Countable(n int64) bool { return -MaxCounter <= n && n <= MaxCounter }

// Equal reports whether v and w are the same.
func (v Value) Equal(w Value) bool {
	return v.Exists == w.Exists && (!v.Exists || string(v.Bytes) == string(w.Bytes))
}

// Counter returns the number that the field holds, or 0 if there is no value. A text that OpAdd would not write for a
// number, such as "007", is ErrNotCounter in every store.
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

// Apply returns the fields after the delta's changes, or ErrConflict if the fields do not match Expect. The result
// shares no bytes with the delta. Apply doesn't change old.
func (d Delta) Apply(old map[string][]byte) (map[string][]byte, error) {
	for name, want := range d.Expect {
		if !Lookup(old, name).Equal(want) {
			return nil, ErrConflict
		}
	}
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
