// Package redact hides secrets from what formats, logs and marshals values.
package redact

import (
	"fmt"
	"io"
)

// Text is what a hidden value is formatted as.
const Text = "[redacted]"

// Hidden, when embedded, hides a whole struct from fmt, log/slog and the encoders that ask for
// text.
type Hidden struct{}

// Format writes Text for every verb.
func (Hidden) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Text) }

// MarshalText returns Text.
func (Hidden) MarshalText() ([]byte, error) { return []byte(Text), nil }
