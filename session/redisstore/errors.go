package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/session"
)

// ErrForeign is what Load, Commit and Destroy return for a key under the prefix that
// holds something else than a session, or half of one. The key is left as it is. It is
// session.ErrCorrupt: a manager takes it for no session.
var ErrForeign = fmt.Errorf("redisstore: the key holds something that is not a session: %w", session.ErrCorrupt)

var errUnreadable = errors.New("redisstore: Redis gave an answer that makes no sense")

// failure makes an operation's error from the one of its round trip. It contains
// nothing of the session: some replies of Redis, and some errors about replies,
// quote what was sent or stored.
func (s *Store) failure(err error) error {
	var reply redis.Error
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"), redis.HasErrorPrefix(err, "NOTSESSION"):
		return ErrForeign
	case errors.As(err, &reply):
		return fmt.Errorf("redisstore: %w", redispipe.Redact(reply, s.prefix))
	case strings.Contains(err.Error(), "can't parse"):
		return errUnreadable
	}
	return fmt.Errorf("redisstore: %w", err)
}
