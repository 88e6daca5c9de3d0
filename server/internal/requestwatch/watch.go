// Package requestwatch lets package servertest observe the requests of servers, wherever they are inside a handler.
package requestwatch

import (
	"context"

	"github.com/lazyreq/lazyreq/reqctx"
)

type key struct{}

// With returns a context for a request. Each server that answers the request calls fn before its
// handlers.
func With(ctx context.Context, fn func(*reqctx.Host)) context.Context {
	return context.WithValue(ctx, key{}, fn)
}

// Notify calls the function that [With] has added to ctx, if there is one.
func Notify(ctx context.Context, h *reqctx.Host) {
	if fn, ok := ctx.Value(key{}).(func(*reqctx.Host)); ok {
		fn(h)
	}
}
