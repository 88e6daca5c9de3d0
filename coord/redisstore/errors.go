package redisstore

import (
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/internal/redispipe"
)

// These come with coord.ErrStore and say what is known.
var (
	// ErrNotSent means that the operation was not sent to Redis within Options.Timeout. It was
	// not done and will not be.
	ErrNotSent = redispipe.ErrNotSent
	// ErrNoReply means that Redis did not reply within Options.Timeout, or that the connection
	// broke. The operation may have been done, or may still be.
	ErrNoReply = redispipe.ErrNoReply
	// ErrKeyType means that a key of the store's holds something else, which is left as it is.
	ErrKeyType = errors.New("redisstore: the key holds something that is neither a token nor a lease")

	errKeyType    = fmt.Errorf("%w: %w", coord.ErrStore, ErrKeyType)
	errUnreadable = fmt.Errorf("%w: %w", coord.ErrStore, redispipe.ErrUnreadable)
)
