package storage

import (
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
