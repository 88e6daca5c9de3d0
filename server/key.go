package server

import (
	"context"
	"fmt"
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
		id, err := s.ID()
		if err != nil {
			return "", err
		}
		if id == "" {
			return "", fmt.Errorf("%w: no session", ratelimit.ErrNoKey)
		}
		return id, nil
	}
}
