package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotFound is what Load returns for a session that is unknown, destroyed
	// or expired, or whose secret is another: the caller can't tell which.
	ErrNotFound = errors.New("session: not found")

	// ErrGone is what Commit returns when the session that it should change is
	// no longer there, or no longer under the secret that the writer holds.
	ErrGone = errors.New("session: destroyed, expired or renewed meanwhile")

	// ErrExists is what Commit returns when it should create a session at a
	// locator that is taken.
	ErrExists = errors.New("session: locator is taken")

	// ErrTooLarge is what Commit returns for a session that is larger than the
	// store may ever keep.
	ErrTooLarge = errors.New("session: too large for the store")
)

// A Store keeps sessions. Memory is one; others pass the suite in storetest.
//
// All methods are atomic, safe for concurrent use, return the context's error
// without effect when ctx has ended before they begin, and go by the store's own
// clock. A session whose limits have passed is treated as if it were not there.
// Digests are compared so that timing tells nothing about the secret. Errors never
// contain a locator, a digest or a value.
type Store interface {
	// Load returns the session at l, or ErrNotFound. It counts as use: a session
	// last touched Limits.Touch ago or longer is touched, in the same call.
	Load(ctx context.Context, l Locator, d Digest, lim Limits) (Record, error)

	// Commit creates a session or changes one, all or nothing, and touches it. It
	// changes only the fields that the delta names, so that writers of different
	// fields never undo each other. It never creates over an existing session
	// (ErrExists) and never changes or brings back one that is gone (ErrGone).
	Commit(ctx context.Context, d Delta) error

	// Destroy removes the session at l. It returns nil if nothing is there any
	// more, and ErrGone, removing nothing, if the digest is not the session's.
	Destroy(ctx context.Context, l Locator, d Digest) error
}

// Limits bound a session's life. They come with every call
// that needs them, so that a changed configuration holds for all sessions at
// once; stores keep times, not limits.
type Limits struct {
	Idle     time.Duration // it ends this long after it was last touched
	Absolute time.Duration // it ends this long after it was created, used or not
	Touch    time.Duration // a Load touches it this long after it was last touched; may be 0
}

func (l Limits) expired(created, touched, now time.Time) bool {
	return now.Sub(touched) >= l.Idle || now.Sub(created) >= l.Absolute
}

// A Record is a session as a store returns it. It is read-only: a store may share
// the map and the values with other callers. It formats and logs as "[redacted]".
type Record struct {
	redacted
	Fields  map[string][]byte // encoded values by name; nil if there are none
	Created time.Time         // by the store's clock
}

// An Op is what a Change does to its field. A store refuses one that it doesn't
// know with an error that names it, before it changes anything.
type Op uint8

const (
	OpSet    Op = iota + 1 // replace or add the value; the last commit wins
	OpDelete               // remove the field, if it is there
)

// A Change is what a Delta does to one field.
type Change struct {
	Op    Op
	Value []byte // for OpSet; may be empty; the store keeps no reference to it
}

// A Delta is what one request changes in one session. The zero Delta is not
// valid. It formats and logs as "[redacted]".
type Delta struct {
	redacted
	Locator Locator
	Digest  Digest            // of the secret that the writer holds; for Create, of the new session
	Create  bool              // make the session; otherwise it must be there
	Rotate  Digest            // replaces the stored digest; zero keeps it; not with Create
	Changes map[string]Change // by field; a name is any bytes, at least one
	Limits  Limits
}

// Validate returns an error if the delta is malformed: an unknown Op, a field
// without a name, Idle or Absolute not above zero, or Rotate together with
// Create. Stores call it first.
func (d Delta) Validate() error {
	if d.Limits.Idle <= 0 || d.Limits.Absolute <= 0 {
		return errors.New("session: delta without limits")
	}
	if d.Create && d.Rotate != (Digest{}) {
		return errors.New("session: delta that creates and rotates")
	}
	for name, c := range d.Changes {
		if name == "" {
			return errors.New("session: delta with a nameless field")
		}
		if c.Op != OpSet && c.Op != OpDelete {
			return fmt.Errorf("session: field %q: unknown op %d", name, c.Op)
		}
	}
	return nil
}
