package storage

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"

	"github.com/lazyreq/lazyreq/session/internal/redact"
)

// redacted hides the struct that embeds it.
type redacted = redact.Hidden

// A Locator is the key of a session in a store: 128 random bits, the public half
// of the cookie. It is comparable, and formats, logs and marshals as
// "[redacted]"; its text for keys is Key.
type Locator [16]byte

// Key returns the locator in base64url, 22 characters.
func (l Locator) Key() string { return base64.RawURLEncoding.EncodeToString(l[:]) }

// A Digest is the SHA-256 of a session's secret. A store keeps it instead of the
// secret. It formats, logs and marshals as "[redacted]"; its bytes are d[:].
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
