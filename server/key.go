package server

import (
	"context"
	"net/http"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/session"
)

// BySession counts requests by their session, which it loads. Only a session that the store has
// counts, so that an invented cookie brings no new quota. A request without a session is
// [ratelimit.ErrNoKey]; as any client can drop its cookie, combine it:
// ratelimit.FirstOf(server.BySession(), ratelimit.ByIP()). A visitor can still begin one session
// after another; only a user who has logged in is identified.
func BySession() ratelimit.KeyFunc {
	return func(ctx context.Context, _ *http.Request) (string, error) {
		s, err := session.From(ctx)
		if err != nil {
			return "", err
		}
		return s.ID() // "" is no key
	}
}

// ByUser counts requests by the user to whom their session is bound, whichever of the user's sessions
// that is. It loads the session. A request without a user is [ratelimit.ErrNoKey]; combine it:
// ratelimit.FirstOf(server.ByUser(), ratelimit.ByIP()).
func ByUser() ratelimit.KeyFunc {
	return func(ctx context.Context, _ *http.Request) (string, error) {
		s, err := session.From(ctx)
		if err != nil {
			return "", err
		}
		return s.User() // "" is no key
	}
}
