package redisstore

import (
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/session/storage"
)

var (
	// ErrNotSent means that a call was not sent to Redis within Options.Timeout: the
	// session is as it was. After a RevokeAll, some sessions may be revoked.
	ErrNotSent = redispipe.ErrNotSent
	// ErrNoReply means that Redis did not reply within Options.Timeout, or that the
	// connection broke. The operation may have been done, or may still be.
	ErrNoReply = redispipe.ErrNoReply

	// ErrForeign is what Load, Commit and Destroy return for a key under the prefix that
	// holds something else than a session, or half of one. The key is left as it is. It is
	// storage.ErrCorrupt: a manager takes it for no session.
	ErrForeign = fmt.Errorf("redisstore: the key holds something that is not a session: %w", storage.ErrCorrupt)
)

var (
	errRedis      = errors.New("redisstore")
	errUnreadable = fmt.Errorf("%w: %w", errRedis, redispipe.ErrUnreadable)
)
