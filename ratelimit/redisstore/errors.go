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
	// ErrKeyType means that a counter's key holds another value. The store does not change that value.
	ErrKeyType = option.WithText("redisstore: the key holds something that is not this counter", ratelimit.ErrKeyType)
	// ErrNotSent means that the call was not sent, because no connection was available in time or its handshake failed.
	// Nothing was charged.
	ErrNotSent = redispipe.ErrNotSent
	// ErrNoReply means that no reply came in time, the connection broke, or the reply is unreadable. Units may have been
	// charged.
	ErrNoReply = redispipe.ErrNoReply
)

// wrapError returns the store's error for the error of a call.
func (s *Store) wrapError(ctx context.Context, err error) error {
	keyType := fmt.Errorf("%w: %w", ratelimit.ErrStore, ErrKeyType)
	return redispipe.Failures{Store: ratelimit.ErrStore, KeyType: keyType, Prefix: s.prefix}.Wrap(ctx, err)
}

// keyTypeError returns the error for keys of which at least one holds another value.
func keyTypeError(keys ...string) error {
	return fmt.Errorf("%w: %w: %q", ratelimit.ErrStore, ErrKeyType, keys)
}

// unreadableError returns the error for a reply that the scripts cannot have returned.
func unreadableError() error {
	return fmt.Errorf("%w: %w", ratelimit.ErrStore, redispipe.ErrUnreadable)
}
