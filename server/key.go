package server

import (
	"context"
	"net/http"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/session"
)

// BySession counts requests by their session, which it loads; only one that the store
// has, so that nobody gets a new quota for a cookie of his own making. A request without
// one is [ratelimit.ErrNoKey]; as anybody can drop the cookie, it is best combined:
// ratelimit.FirstOf(server.BySession(), ratelimit.ByIP()). A visitor can still begin a
// session after another; what identifies somebody is whom you have logged in.
func BySession() ratelimit.KeyFunc {
	return func(ctx context.Context, _ *http.Request) (string, error) {
		s, err := session.From(ctx)
		if err != nil {
			return "", err
		}
		return s.ID() // "" is no key
	}
}
