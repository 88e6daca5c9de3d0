package coord

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/redispipe"
)

// RedisOptions configure a [Redis]. The zero value is usable.
type RedisOptions struct {
	// Prefix begins the name of every key. Two applications on one Redis need different
	// ones. Default: "coord:".
	Prefix string
	// Timeout bounds every operation, from the moment when it is called and with
	// dialling, whatever the client's own timeouts. Default: 250 ms.
	Timeout time.Duration
}

const defaultTimeout = 250 * time.Millisecond

// Redis is a [TokenStore] and a [LeaseStore] that processes share. Each operation is one
// script call on one key, by the server's clock; those of one moment, of all the stores on
// one client, share a round trip. Nothing is sent twice. It is safe for concurrent use and
// needs no closing: its only goroutine gives back what a failed Acquire may have got, and
// ends within Timeout.
//
// It must not be a Redis that evicts keys: maxmemory-policy noeviction. docs/redis.md has
// the keys and the ACL that a user needs.
type Redis struct {
	prefix  string
	timeout time.Duration
	pipe    *redispipe.Pipe
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
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Prefix == "" {
		o.Prefix = "coord:"
	}
	pipe, err := redispipe.For(client)
	if err != nil {
		return nil, fmt.Errorf("coord: %w", err)
	}
	return &Redis{prefix: o.Prefix, timeout: o.Timeout, pipe: pipe}, nil
}

// run runs a script on the key of that name, less the prefix. Its arguments are strings and
// numbers, never a caller's []byte: a round trip may outlive the call that it was for.
func (s *Redis) run(ctx context.Context, script *redispipe.Script, name string, args ...any) (*reply, error) {
	call := redispipe.Call{Script: script, Keys: []string{s.prefix + name}, Args: args}
	r, err := s.pipe.Run(ctx, s.timeout, call)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	return &reply{values: r.Values}, nil
}

var errUnreadable = fmt.Errorf("%w: %w", ErrStore, redispipe.ErrUnreadable)

// failure makes an operation's error from a call's. It quotes neither keys nor arguments, as
// some error replies of Redis do.
func (s *Redis) failure(ctx context.Context, err error) error {
	var reply redis.Error
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	case redis.HasErrorPrefix(err, "WRONGTYPE"), redis.HasErrorPrefix(err, "FOREIGN"):
		return fmt.Errorf("%w: %w", ErrStore, ErrForeign)
	case errors.As(err, &reply):
		return fmt.Errorf("%w: %w", ErrStore, redispipe.Redact(reply, s.prefix))
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

// reply is what a script returned. Its methods read the next value, and note in bad if that
// is missing or of another type.
type reply struct {
	values []any
	bad    bool
}

func next[T int64 | string](r *reply) (v T) {
	if len(r.values) == 0 {
		r.bad = true
		return v
	}
	v, ok := r.values[0].(T)
	r.values, r.bad = r.values[1:], r.bad || !ok
	return v
}

func (r *reply) int() int64     { return next[int64](r) }
func (r *reply) string() string { return next[string](r) }

// time reads a time in µs; zero for 0.
func (r *reply) time() time.Time {
	n := r.int()
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n)
}

// duration reads a number of µs.
func (r *reply) duration() time.Duration { return time.Duration(r.int()) * time.Microsecond }

// end returns an error if a value was not as it should be, or some are left.
func (r *reply) end() error {
	if r.bad || len(r.values) > 0 {
		return errUnreadable
	}
	return nil
}
