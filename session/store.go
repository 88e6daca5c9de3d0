package session

import (
	"github.com/lazyreq/lazyreq/internal/redact"
	"github.com/lazyreq/lazyreq/session/storage"
)

// Store keeps sessions. Packages memstore and redisstore have one; package storage says what one
// has to do, for those who write another.
type Store = storage.Store

// These are errors of a save, within an [Error].
var (
	// ErrGone means that the session was destroyed, has expired or was renewed meanwhile.
	ErrGone = storage.ErrGone
	// ErrConflict means that a field was changed meanwhile which must not be.
	ErrConflict = storage.ErrConflict
	// ErrNotCounter means that a field is no counter, or its sum out of range.
	ErrNotCounter = storage.ErrNotCounter
	// ErrTooLarge means that the session would be larger than it may be.
	ErrTooLarge = storage.ErrTooLarge
)

// MaxCounter is the largest number that a [Counter] holds, and -MaxCounter the smallest.
const MaxCounter = storage.MaxCounter

// redacted hides what embeds it, as all that knows a part of a token does.
type redacted = redact.Hidden
