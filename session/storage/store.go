package storage

import (
	"context"
	"errors"
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

	// ErrConflict is what Commit returns when a field that it expects to find in a
	// certain state was changed meanwhile.
	ErrConflict = errors.New("session: a field was changed meanwhile")

	// ErrNotCounter is what Commit returns when it should add to a field that holds
	// something else than a whole number, or whose sum would be out of range.
	ErrNotCounter = errors.New("session: the field is not a counter, or its sum is out of range")

	// ErrTooLarge is what Commit returns for a session that is larger than the
	// store may ever keep.
	ErrTooLarge = errors.New("session: too large")

	// ErrCorrupt is what a store returns, wrapped, for a locator at which something
	// is kept that it cannot read: half a record, or one of another version. It
	// leaves that alone.
	ErrCorrupt = errors.New("session: what is stored cannot be read")
)

// A Store keeps sessions. Packages memstore and redisstore have one; package storetest tests others.
//
// All methods are safe for concurrent use, return the context's error without
// effect when ctx has ended before they begin, and go by the store's own clock. A
// session whose limits have passed is treated as if it were not there. Digests are
// compared so that timing tells nothing about the secret. Errors never contain a
// locator, a digest, a user or a value.
//
// Load, Commit, Destroy and Revoke are atomic. List and RevokeAll need not be: they
// cover every session that was bound to the user before they began, and may or may
// not cover one that is being bound while they run.
type Store interface {
	// Load returns the session at l, or ErrNotFound. It counts as use: a session
	// last touched Limits.Touch ago or longer is touched, in the same call. For a
	// digest that was rotated away less than its grace ago the record is Old, and
	// nothing is touched.
	Load(ctx context.Context, l Locator, d Digest, lim Limits) (Record, error)

	// Commit creates a session or changes one, all or nothing, and touches it. It
	// changes only the fields that the delta names, so that writers of different
	// fields never undo each other. It never creates over an existing session
	// (ErrExists), never changes or brings back one that is gone or whose digest is
	// another (ErrGone), and changes nothing if an expectation fails (ErrConflict).
	Commit(ctx context.Context, d Delta) error

	// Destroy removes the session at l. It returns nil if nothing is there any
	// more, and ErrGone, removing nothing, if the digest is not the session's.
	Destroy(ctx context.Context, l Locator, d Digest) error

	// List returns the sessions that are bound to user, in no particular order. It
	// is not use: nothing is touched.
	List(ctx context.Context, user string, lim Limits) ([]Entry, error)

	// Revoke removes the session at l if it is bound to user, and nothing otherwise.
	Revoke(ctx context.Context, user string, l Locator) error

	// RevokeAll removes the sessions that are bound to user, but not the one at
	// except, and returns how many there were. After an error some may be left.
	RevokeAll(ctx context.Context, user string, except Locator) (int, error)
}

// Limits bound a session's life. They come with every call
// that needs them, so that a changed configuration holds for all sessions at
// once; stores keep times, not limits.
type Limits struct {
	Idle     time.Duration // it ends this long after it was last touched
	Absolute time.Duration // it ends this long after it was created, used or not
	Touch    time.Duration // a Load touches it this long after it was last touched; may be 0
}

// Expired reports whether a session that was created and touched then has ended.
func (l Limits) Expired(created, touched, now time.Time) bool {
	return now.Sub(touched) >= l.Idle || now.Sub(created) >= l.Absolute
}

// A Record is a session as a store returns it. It is read-only: a store may share
// the map and the values with other callers. It formats and logs as "[redacted]".
type Record struct {
	redacted
	Fields  map[string][]byte // encoded values by name; nil if there are none
	Created time.Time         // by the store's clock
	Touched time.Time         // when it was last used, as far as that was noted
	User    string            // whom it is bound to; empty for nobody
	Old     bool              // the digest was replaced lately: it reads, and no longer writes
}

// An Entry is a session of a user's. It formats and logs as "[redacted]".
type Entry struct {
	redacted
	Locator Locator
	Record  Record
}
