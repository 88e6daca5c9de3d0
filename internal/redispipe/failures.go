package redispipe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Failures describes the errors that a store returns for failed calls.
type Failures struct {
	Store   error  // wraps the error of every failed call
	KeyType error  // is returned for a reply that begins with WRONGTYPE or FOREIGN
	Prefix  string // of the store's keys, which no error quotes
}

// Wrap returns a store's error for that of a call. The cause of ctx's end is returned as it is.
func (f Failures) Wrap(ctx context.Context, err error) error {
	var reply redis.Error
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	case redis.HasErrorPrefix(err, "WRONGTYPE"), redis.HasErrorPrefix(err, "FOREIGN"):
		return f.KeyType
	case errors.As(err, &reply):
		err = redact(reply, f.Prefix)
	}
	return fmt.Errorf("%w: %w", f.Store, err)
}

// redact returns an error reply without keys, which begin with prefix, and arguments.
func redact(reply redis.Error, prefix string) redis.Error {
	text, _, _ := strings.Cut(reply.Error(), ", with args beginning with")
	if strings.Contains(text, prefix) {
		text, _, _ = strings.Cut(text, " ")
	}
	if text == reply.Error() {
		return reply // of its own type
	}
	return redacted(text)
}

// redacted is the rest of an error reply.
type redacted string

func (r redacted) Error() string { return string(r) }

// RedisError marks r as a redis.Error.
func (redacted) RedisError() {}
