// Package redact hides secrets when values are formatted, logged or marshaled.
package redact

import (
	"fmt"
	"io"
)

// Text is the formatted form of a hidden value.
const Text = "[redacted]"

// Hidden, when embedded, hides a whole struct from fmt, log/slog and the encoders that use
// [encoding.TextMarshaler].
type Hidden struct{}

// Format writes Text for every verb.
func (Hidden) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Text) }

// MarshalText returns Text.
func (Hidden) MarshalText() ([]byte, error) { return []byte(Text), nil }
