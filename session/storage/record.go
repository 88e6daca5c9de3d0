// Package storage has the types and errors of the methods of session.Store. Programs need it only if they have their
// own store, which package storetest can test.
package storage

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/session/internal/redact"
)

var (
	// ErrNotFound is the error of Load for a session that does not exist, has expired or has another secret. The
	// caller cannot tell these apart.
	ErrNotFound = errors.New("session: not found")
	// ErrGone is the error of Commit and Destroy for a session that no longer exists or no longer has the caller's
	// secret.
	ErrGone = errors.New("session: destroyed, expired or renewed in the meantime")
	// ErrExists is the error of a Commit that would create a session at a locator in use.
	ErrExists = errors.New("session: locator is in use")
	// ErrConflict is the error of Commit if a field doesn't have its expected value.
	ErrConflict = errors.New("session: a field was changed by another request")
	// ErrNotCounter is the error of a Commit that would add to a field that doesn't hold a whole number, or whose
	// sum would be out of range.
	ErrNotCounter = errors.New("session: the field is not a counter, or its sum is out of range")
	// ErrTooLarge is the error of Commit for a session that is too large for the store.
	ErrTooLarge = errors.New("session: too large")
	// ErrCorrupt is wrapped in the error for a locator with content that the store cannot read, such as half a
	// record. The store doesn't change it.
	ErrCorrupt = errors.New("session: stored data cannot be read")
)

// Limits bound a session's lifetime. They are arguments and not part of the record, so that changed options take
// effect for all sessions at once.
type Limits struct {
	Idle     time.Duration // the session ends this long after it was last touched
	Absolute time.Duration // the session ends this long after its creation
	Touch    time.Duration // a Load touches the session this long after it was last touched; may be 0
	// Remembered replaces Idle and Absolute for sessions with Record.Remembered. 0 means that they have no limits of their
	// own.
	Remembered time.Duration
	// Device is not a limit, but describes the caller. Each touch of a session of a user records it. "" records nothing.
	Device string
}

// DeviceOf returns the device of a session of user after a touch. old is its device before.
func (l Limits) DeviceOf(user, old string) string {
	if user == "" || l.Device == "" {
		return old
	}
	return l.Device
}

// For returns the limits of a session whose Record.Remembered has this value.
func (l Limits) For(remembered bool) Limits {
	if remembered && l.Remembered > 0 {
		l.Idle, l.Absolute = l.Remembered, l.Remembered
	}
	return l
}

// Expired reports whether a session with these times has ended. Call For first if the session may be remembered.
func (l Limits) Expired(created, touched, now time.Time) bool {
	return now.Sub(touched) >= l.Idle || now.Sub(created) >= l.Absolute
}

// A Record is a stored session. It is read-only, because a store may share the map and the values with other
// callers. It formats as "[redacted]".
type Record struct {
	redacted
	Fields     map[string][]byte // encoded values by name; nil if there are none
	Created    time.Time         // by the store's clock
	Touched    time.Time         // when it was last touched
	User       string            // the user to whom it is bound, or ""
	Device     string            // Limits.Device of its last touch that had one, or ""
	Remembered bool              // Delta.Remember of the Commit that bound it
	Old        bool              // the caller's digest was replaced: it may read, but not write
}

// An Entry is a session of a user. It formats as "[redacted]".
type Entry struct {
	redacted
	Locator Locator
	Record  Record
}

// redacted hides the struct that embeds it.
type redacted = redact.Hidden

// A Locator is the key of a session in a store: 128 random bits, the public half of the cookie. It is comparable.
// It formats and marshals as "[redacted]".
type Locator [16]byte

// Key returns the locator in base64url, 22 characters.
func (l Locator) Key() string { return base64.RawURLEncoding.EncodeToString(l[:]) }

// A Digest is the SHA-256 of a session's secret. A store keeps it instead of the secret. It formats and marshals as
// "[redacted]".
type Digest [32]byte

// Equal compares in constant time.
func (d Digest) Equal(e Digest) bool { return subtle.ConstantTimeCompare(d[:], e[:]) == 1 }

// Format writes "[redacted]" for every verb.
func (Locator) Format(f fmt.State, verb rune) { redacted{}.Format(f, verb) }

// MarshalText returns "[redacted]".
func (Locator) MarshalText() ([]byte, error) { return redacted{}.MarshalText() }

// Format writes "[redacted]" for every verb.
func (Digest) Format(f fmt.State, verb rune) { redacted{}.Format(f, verb) }

// MarshalText returns "[redacted]".
func (Digest) MarshalText() ([]byte, error) { return redacted{}.MarshalText() }
