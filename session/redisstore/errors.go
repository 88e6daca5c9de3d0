package redisstore

import (
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/session/storage"
)

var (
	// ErrNotSent means that a call was not sent to Redis: no connection could be made, its
	// handshake failed, or none was free within Options.Timeout. The session is unchanged. After
	// a RevokeAll, some sessions may be revoked.
	ErrNotSent = redispipe.ErrNotSent
	// ErrNoReply means that Redis did not reply within Options.Timeout, that the connection
	// broke, or that the reply is unreadable. The operation may have been done, or may still be.
	ErrNoReply = redispipe.ErrNoReply

	// ErrKeyType is the error of Load, Commit and Destroy for a key that does not hold a
	// complete session. The key stays as it is. The error is [storage.ErrCorrupt], so a
	// manager treats the session as missing.
	ErrKeyType = option.WithText("redisstore: the key does not hold a session", storage.ErrCorrupt)
)

var (
	errRedis      = errors.New("store unavailable")
	errUnreadable = fmt.Errorf("%w: %w", errRedis, redispipe.ErrUnreadable)
)
