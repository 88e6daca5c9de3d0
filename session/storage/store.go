package storage

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrNotFound is the error of Load for a session that is unknown, destroyed
	// or expired, or has another secret; the caller can't distinguish these.
	ErrNotFound = errors.New("session: not found")

	// ErrGone is the error of Commit for a session that no longer exists, or no longer
	// has the writer's secret.
	ErrGone = errors.New("session: destroyed, expired or renewed in the meantime")

	// ErrExists is the error of Commit if it should create a session at a
	// locator that is in use.
	ErrExists = errors.New("session: locator is in use")

	// ErrConflict is the error of Commit if a field doesn't have its expected value.
	ErrConflict = errors.New("session: a field was changed by another request")

	// ErrNotCounter is the error of Commit if it should add to a field that doesn't hold
	// a whole number, or if the sum would be out of range.
	ErrNotCounter = errors.New("session: the field is not a counter, or its sum is out of range")

	// ErrTooLarge is the error of Commit for a session that is too large for the store.
	ErrTooLarge = errors.New("session: too large")

	// ErrCorrupt is wrapped in the error for a locator whose content the store cannot
	// read: half a record, or one of another version. The store doesn't change it.
	ErrCorrupt = errors.New("session: stored data cannot be read")
)

// A Store keeps sessions. Packages memstore and redisstore have implementations; package
// storetest tests others.
//
// All methods are safe for concurrent use, return the context's error without
// effect if ctx has ended before they begin, and use the store's own clock. A
// session whose limits have passed counts as missing. The time of a comparison of digests
// reveals nothing about the secret. Errors never contain a locator, a digest, a user or a
// value.
//
// Load, Commit, Destroy and Revoke are atomic. List and RevokeAll need not be: they
// cover every session that was bound to the user before they began, and may or may
// not cover one that is bound while they run.
type Store interface {
	// Load returns the session at l, or ErrNotFound. It counts as use: a session
	// that was last touched Limits.Touch ago or longer is touched, in the same call. For a
	// digest that was replaced within its grace the record is Old, and nothing is touched.
	Load(ctx context.Context, l Locator, d Digest, lim Limits) (Record, error)

	// Commit creates a session or changes one, all or nothing, and touches it. It
	// changes only the fields of the delta, so that writers of different
	// fields never undo each other. It never creates over an existing session
	// (ErrExists), never changes or brings back one that is gone or has another digest
	// (ErrGone), and changes nothing if an expectation fails (ErrConflict).
	Commit(ctx context.Context, d Delta) error

	// Destroy removes the session at l. It returns nil if there is none, and ErrGone,
	// removing nothing, if the session has another digest.
	Destroy(ctx context.Context, l Locator, d Digest) error

	// List returns the sessions that are bound to user, in no particular order. It
	// doesn't touch them.
	List(ctx context.Context, user string, lim Limits) ([]Entry, error)

	// Revoke removes the session at l if it is bound to user, and nothing otherwise.
	Revoke(ctx context.Context, user string, l Locator) error

	// RevokeAll removes the sessions that are bound to user, but not the one at
	// except, and returns how many there were. After an error some may be left.
	RevokeAll(ctx context.Context, user string, except Locator) (int, error)
}

// Limits bound a session's lifetime. They are arguments, and stores keep only times, so
// that a changed configuration takes effect for all sessions at once.
type Limits struct {
	Idle     time.Duration // it ends this long after it was last touched
	Absolute time.Duration // it ends this long after it was created, used or not
	Touch    time.Duration // a Load touches it this long after it was last touched; may be 0
}

// Expired reports whether a session with these times has ended.
func (l Limits) Expired(created, touched, now time.Time) bool {
	return now.Sub(touched) >= l.Idle || now.Sub(created) >= l.Absolute
}

// A Record is a stored session. It is read-only: a store may share
// the map and the values with other callers. It formats and logs as "[redacted]".
type Record struct {
	redacted
	Fields  map[string][]byte // encoded values by name; nil if there are none
	Created time.Time         // by the store's clock
	Touched time.Time         // when it was last used, as far as recorded
	User    string            // the user to whom it is bound, or ""
	Old     bool              // the digest was replaced: it may read, and not write
}

// An Entry is a session of a user. It formats and logs as "[redacted]".
type Entry struct {
	redacted
	Locator Locator
	Record  Record
}
