package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// Each of these comes with [ratelimit.ErrStore].
var (
	// ErrForeign means that a counter's name in Redis is taken by something else, which is
	// left as it is.
	ErrForeign = fmt.Errorf("redisstore: the key holds something that is not this counter: %w", ratelimit.ErrKeyType)
	// ErrNotSent means that the call was not sent in time. Nothing was charged.
	ErrNotSent = redispipe.ErrNotSent
	// ErrNoReply means that no reply came in time, or that the connection broke. Units may
	// have been charged.
	ErrNoReply = redispipe.ErrNoReply
)

// failure distinguishes the end of ctx from a failure of Redis.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", ratelimit.ErrStore, err)
}

func foreign(keys ...string) error {
	return fmt.Errorf("%w: %w: %q", ratelimit.ErrStore, ErrForeign, keys)
}

func unreadable() error { return fmt.Errorf("%w: %w", ratelimit.ErrStore, redispipe.ErrUnreadable) }

func noScript(r ratelimit.Rule) error {
	return fmt.Errorf("%w: redisstore has no script for %v", ratelimit.ErrOp, r)
}
