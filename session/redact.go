package session

import (
	"fmt"
	"io"
	"log/slog"
)

const redactedText = "[redacted]"

// redacted, when embedded, hides a whole struct from fmt, log/slog and the
// encoders that ask for text. Whatever holds a part of a token embeds it.
type redacted struct{}

// String returns "[redacted]".
func (redacted) String() string { return redactedText }

// Format writes "[redacted]" for every verb.
func (redacted) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redactedText) }

// LogValue returns "[redacted]".
func (redacted) LogValue() slog.Value { return slog.StringValue(redactedText) }

// MarshalText returns "[redacted]".
func (redacted) MarshalText() ([]byte, error) { return []byte(redactedText), nil }

// String returns "[redacted]".
func (Locator) String() string { return redactedText }

// Format writes "[redacted]" for every verb.
func (Locator) Format(f fmt.State, v rune) { redacted{}.Format(f, v) }

// LogValue returns "[redacted]".
func (Locator) LogValue() slog.Value { return redacted{}.LogValue() }

// MarshalText returns "[redacted]".
func (Locator) MarshalText() ([]byte, error) { return redacted{}.MarshalText() }

// String returns "[redacted]".
func (Digest) String() string { return redactedText }

// Format writes "[redacted]" for every verb.
func (Digest) Format(f fmt.State, v rune) { redacted{}.Format(f, v) }

// LogValue returns "[redacted]".
func (Digest) LogValue() slog.Value { return redacted{}.LogValue() }

// MarshalText returns "[redacted]".
func (Digest) MarshalText() ([]byte, error) { return redacted{}.MarshalText() }
