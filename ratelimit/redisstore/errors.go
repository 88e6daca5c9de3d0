package redisstore

import (
	"context"
	"fmt"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// The errors of a failed call wrap [ratelimit.ErrStore] and one of these.
var (
	// ErrKeyType means that a counter's key holds another value, which stays unchanged.
	ErrKeyType = option.WithText("redisstore: the key holds something that is not this counter", ratelimit.ErrKeyType)
	// ErrNotSent means that the call was not sent, because no connection could be made or was free in time, or its
	// handshake failed. Nothing was charged.
	ErrNotSent = redispipe.ErrNotSent
	// ErrNoReply means that no reply came in time, the connection broke, or the reply is unreadable. Units may have been
	// charged.
	ErrNoReply = redispipe.ErrNoReply
)

// wrapError returns the error of an op whose call has failed.
func (s *Store) wrapError(ctx context.Context, err error) error {
	keyType := fmt.Errorf("%w: %w", ratelimit.ErrStore, ErrKeyType)
	return redispipe.Failures{Store: ratelimit.ErrStore, KeyType: keyType, Prefix: s.prefix}.Wrap(ctx, err)
}

func keyTypeError(keys ...string) error {
	return fmt.Errorf("%w: %w: %q", ratelimit.ErrStore, ErrKeyType, keys)
}

func unreadableError() error {
	return fmt.Errorf("%w: %w", ratelimit.ErrStore, redispipe.ErrUnreadable)
}
