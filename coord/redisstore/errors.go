package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

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

	errUnreadable = fmt.Errorf("%w: %w", coord.ErrStore, redispipe.ErrUnreadable)
)

// failure makes an operation's error from a call's. It quotes neither keys nor arguments, as
// some error replies of Redis do.
func (s *Store) failure(ctx context.Context, err error) error {
	var reply redis.Error
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	case redis.HasErrorPrefix(err, "WRONGTYPE"), redis.HasErrorPrefix(err, "FOREIGN"):
		return fmt.Errorf("%w: %w", coord.ErrStore, ErrKeyType)
	case errors.As(err, &reply):
		return fmt.Errorf("%w: %w", coord.ErrStore, redispipe.Redact(reply, s.prefix))
	}
	return fmt.Errorf("%w: %w", coord.ErrStore, err)
}
