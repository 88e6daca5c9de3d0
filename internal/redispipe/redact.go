package redispipe

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// Redact returns an error reply of Redis without what it quotes: it keeps what the server
// itself says, and if that has one of the keys in it, which begin with prefix, only the
// first word.
func Redact(reply redis.Error, prefix string) redis.Error {
	text, _, _ := strings.Cut(reply.Error(), ", with args beginning with")
	if strings.Contains(text, prefix) {
		text, _, _ = strings.Cut(text, " ")
	}
	return redacted(text)
}

// redacted is what is left of an error reply.
type redacted string

func (r redacted) Error() string { return string(r) }

// RedisError makes it a redis.Error.
func (redacted) RedisError() {}
