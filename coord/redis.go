package coord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/redispipe"
)

// RedisOptions configure a [Redis]. The zero value is usable.
type RedisOptions struct {
	// Prefix begins the name of every key. Two applications on one Redis need different
	// ones. Default: "coord:".
	Prefix string
	// Timeout bounds the wait for Redis in every operation, dialling included, whatever
	// the client's own timeouts. Default: 250 ms.
	Timeout time.Duration
}

// Redis is a [TokenStore] and a [LeaseStore] that processes share. Each operation is one
// script call on one key, by the server's clock; those of one moment, of all the stores on
// one client, share a round trip. Nothing is sent twice. It is safe for concurrent use,
// has no goroutine of its own and needs no closing.
//
// It must not be a Redis that evicts keys: maxmemory-policy noeviction. docs/redis.md has
// the keys and the ACL that a user needs.
type Redis struct {
	prefix string
	pipe   *redispipe.Pipe
}

var (
	_ TokenStore = (*Redis)(nil)
	_ LeaseStore = (*Redis)(nil)
)

// NewRedis returns a store over client (a single server, Sentinel or Cluster, Redis 6.2 or
// later), which stays the caller's to close. It makes no connection: a Redis that is down is
// an error of the operations, until it is back.
func NewRedis(client redis.UniversalClient, o RedisOptions) (*Redis, error) {
	if client == nil {
		return nil, errors.New("coord: no client")
	}
	if o.Timeout < 0 {
		return nil, invalid("RedisOptions.Timeout is %v", o.Timeout)
	}
	if o.Prefix == "" {
		o.Prefix = "coord:"
	}
	pipe, err := redispipe.For(client, redispipe.Options{Timeout: o.Timeout})
	if err != nil {
		return nil, fmt.Errorf("coord: %w", err)
	}
	return &Redis{prefix: o.Prefix, pipe: pipe}, nil
}

// run runs a script on the key of that name, less the prefix. Its arguments are strings and
// numbers, never a caller's []byte: a round trip may outlive the call that it was for.
func (s *Redis) run(ctx context.Context, script *redispipe.Script, replies int, name string, args ...any) (values, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	reply, err := s.pipe.Run(ctx, redispipe.Call{
		Script: script, Keys: []string{s.prefix + name}, Args: args, Replies: replies,
	})
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	return reply.Values, nil
}

var errUnreadable = fmt.Errorf("%w: Redis gave an answer that makes no sense", ErrStore)

// failure makes an operation's error from the one of its round trip. It quotes neither
// keys nor arguments, as some replies of Redis do, and some errors about replies.
func (s *Redis) failure(ctx context.Context, err error) error {
	var reply redis.Error
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	case redis.HasErrorPrefix(err, "WRONGTYPE"), redis.HasErrorPrefix(err, "FOREIGN"):
		return fmt.Errorf("%w: %w", ErrStore, ErrForeign)
	case errors.As(err, &reply):
		return fmt.Errorf("%w: %w", ErrStore, redispipe.Redact(reply, s.prefix))
	case strings.Contains(err.Error(), "can't parse"):
		return errUnreadable
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

// values are what a script returned to a call. Its methods note in bad what is not as it
// should be.
type values []any

func (v values) int(i int, bad *bool) int64 {
	n, ok := v[i].(int64)
	*bad = *bad || !ok
	return n
}

func (v values) string(i int, bad *bool) string {
	s, ok := v[i].(string)
	*bad = *bad || !ok
	return s
}

// time returns a time in µs; zero for 0.
func (v values) time(i int, bad *bool) time.Time {
	n := v.int(i, bad)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n)
}

// duration returns what is in µs.
func (v values) duration(i int, bad *bool) time.Duration {
	return time.Duration(v.int(i, bad)) * time.Microsecond
}
