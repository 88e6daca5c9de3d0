// Package redisstore stores tokens and leases in Redis, so that processes share them.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/internal/redispipe"
)

// Each of these errors is wrapped together with coord.ErrStore.
var (
	// ErrNotSent means that the operation was not sent to Redis: no connection could be made,
	// its handshake failed, or none was free within Options.Timeout. It was not done and will not be.
	ErrNotSent = redispipe.ErrNotSent
	// ErrNoReply means that Redis did not reply within Options.Timeout, that the connection
	// broke, or that the reply is unreadable. The operation may have been done, or may still be.
	ErrNoReply = redispipe.ErrNoReply
	// ErrKeyType means that a key of the store holds something else, which is left as it is.
	ErrKeyType = errors.New("redisstore: the key holds something that is neither a token nor a lease")

	errKeyType    = fmt.Errorf("%w: %w", coord.ErrStore, ErrKeyType)
	errUnreadable = fmt.Errorf("%w: %w", coord.ErrStore, redispipe.ErrUnreadable)
)

// Options configure a [Store]. The zero value means the defaults.
type Options struct {
	// Prefix begins the name of every key. Two applications on one Redis need different prefixes.
	// Default: "coord:".
	Prefix string
	// Timeout bounds every operation, dialling included, from the moment it is called, whatever
	// the client's own timeouts. Default: 250 ms.
	Timeout time.Duration
}

const defaultTimeout = 250 * time.Millisecond

// Store is a [coord.TokenStore] and a [coord.LeaseStore] in Redis. Each operation is one script call
// on one key, by the server's clock. Calls of the same moment, of all stores on one client, share a
// round trip. Nothing is sent twice. A Store is safe for concurrent use and needs no closing: its
// only goroutine releases what a failed Acquire may have been granted, and ends within Timeout.
//
// Redis must not evict the keys: set maxmemory-policy noeviction. docs/redis.md lists the keys and
// the commands that an ACL has to permit.
type Store struct {
	pipe     *redispipe.Pipe
	timeout  time.Duration
	failures redispipe.Failures // has the prefix of the keys
}

var (
	_ coord.TokenStore = (*Store)(nil)
	_ coord.LeaseStore = (*Store)(nil)
)

// New returns a store over client, for a single server, Sentinel or Cluster of Redis 6.2 or later.
// The caller closes the client. New does not connect to Redis. It returns an error if an option is
// out of range.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	if err := option.Duration("redisstore", "Options.Timeout", o.Timeout, 0); err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Prefix == "" {
		o.Prefix = "coord:"
	}
	pipe, err := redispipe.For(client)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	failures := redispipe.Failures{Store: coord.ErrStore, KeyType: errKeyType, Prefix: o.Prefix}
	return &Store{pipe: pipe, timeout: o.Timeout, failures: failures}, nil
}

// run runs a script on the key with this name after the prefix. Arguments are strings and numbers,
// never a caller's []byte: a round trip may outlive its call.
func (s *Store) run(ctx context.Context, script *redispipe.Script, name string, args ...any) (*reply, error) {
	call := redispipe.Call{Script: script, Keys: []string{s.failures.Prefix + name}, Args: args}
	r, err := s.pipe.Run(ctx, s.timeout, call)
	if err != nil {
		return nil, s.failures.Wrap(ctx, err)
	}
	return &reply{values: r.Values}, nil
}

// runStatus is run for a script whose reply is one status from 0 to max.
func (s *Store) runStatus(ctx context.Context, max int64, script *redispipe.Script, name string, args ...any) (int64, error) {
	r, err := s.run(ctx, script, name, args...)
	if err != nil {
		return 0, err
	}
	status := r.int()
	if !r.complete() || status < 0 || status > max {
		return 0, errUnreadable
	}
	return status, nil
}

// reply is the reply of a script. Each of its methods reads the next value.
type reply struct {
	values  []any
	invalid bool // a value was missing or of another type
}

func next[T int64 | string](r *reply) (v T) {
	if len(r.values) == 0 {
		r.invalid = true
		return v
	}
	v, ok := r.values[0].(T)
	r.values, r.invalid = r.values[1:], r.invalid || !ok
	return v
}

func (r *reply) int() int64     { return next[int64](r) }
func (r *reply) string() string { return next[string](r) }

// time reads a time in µs; 0 means the zero time.
func (r *reply) time() time.Time {
	if n := r.int(); n != 0 {
		return time.UnixMicro(n)
	}
	return time.Time{}
}

// duration reads a duration in µs.
func (r *reply) duration() time.Duration { return time.Duration(r.int()) * time.Microsecond }

// complete reports whether all values have been read and were valid.
func (r *reply) complete() bool { return !r.invalid && len(r.values) == 0 }
