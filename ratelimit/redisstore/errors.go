package redisstore

import (
	"context"
	"fmt"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// Each of these comes with [ratelimit.ErrStore].
var (
	// ErrKeyType means that a counter's name in Redis is taken by something else, which is
	// left as it is.
	ErrKeyType = option.WithText("redisstore: the key holds something that is not this counter", ratelimit.ErrKeyType)
	// ErrNotSent means that the call was not sent: no connection could be made, its handshake
	// failed, or none was free in time. Nothing was charged.
	ErrNotSent = redispipe.ErrNotSent
	// ErrNoReply means that no reply came in time, that the connection broke, or that the reply
	// is unreadable. Units may have been charged.
	ErrNoReply = redispipe.ErrNoReply
)

// wrapError returns the error of an operation whose call has failed.
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

func noScriptError(r ratelimit.Rule) error {
	return fmt.Errorf("%w: redisstore has no script for %v", ratelimit.ErrOp, r)
}
