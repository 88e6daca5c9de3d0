package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/session"
)

// ErrForeign is what every operation returns for a key under the prefix that holds
// something else than a session. The key is left as it is.
var ErrForeign = errors.New("redisstore: the key holds something that is not a session")

var errUnreadable = errors.New("redisstore: Redis gave an answer that makes no sense")

// failure makes an operation's error from the one of its round trip. It contains
// nothing of the session: some replies of Redis, and some errors about replies,
// quote what was sent or stored.
func failure(err error, l session.Locator) error {
	var reply redis.Error
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"), redis.HasErrorPrefix(err, "NOTSESSION"):
		return ErrForeign
	case errors.As(err, &reply):
		return fmt.Errorf("redisstore: %w", redact(reply, l))
	case strings.Contains(err.Error(), "can't parse"):
		return errUnreadable
	}
	return fmt.Errorf("redisstore: %w", err)
}

// refusal is an error reply of Redis without what it quotes.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError makes it a redis.Error.
func (refusal) RedisError() {}

// redact keeps of a reply what the server itself says.
func redact(reply redis.Error, l session.Locator) refusal {
	text, _, _ := strings.Cut(reply.Error(), ", with args beginning with")
	if strings.Contains(text, l.Key()) {
		text, _, _ = strings.Cut(text, " ")
	}
	return refusal(text)
}
