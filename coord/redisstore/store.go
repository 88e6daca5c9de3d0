// Package redisstore stores tokens and leases in Redis, so that processes share them.
package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/internal/redispipe"
)

// These errors are returned together with coord.ErrStore.
var (
	// ErrNotSent means that the operation was not sent to Redis and has no effect. No connection could be made, the
	// handshake failed, or no connection was free within Options.Timeout.
	ErrNotSent = redispipe.ErrNotSent
	// ErrNoReply means that Redis did not reply within Options.Timeout, that the connection broke, or that the reply
	// is unreadable. Redis may have run the operation, or may still run it.
	ErrNoReply = redispipe.ErrNoReply
	// ErrKeyType means that a key of the store holds something else, which stays unchanged.
	ErrKeyType = errors.New("redisstore: the key holds something that is neither a token nor a lease")

	errKeyType    = fmt.Errorf("%w: %w", coord.ErrStore, ErrKeyType)
	errUnreadable = fmt.Errorf("%w: %w", coord.ErrStore, redispipe.ErrUnreadable)
)

// Options configures a [Store]. The zero value means the defaults.
type Options struct {
	// Prefix is the beginning of the name of every key. Two applications with the same Redis need different prefixes.
	// Default: "coord:".
	Prefix string
	// Timeout is the maximum time of every operation. It begins with the call and includes dialling. The client's own
	// timeouts have no effect. Default: 250 ms.
	Timeout time.Duration
}

// Store is a [coord.TokenStore] and a [coord.LeaseStore] in Redis. Each operation is one script call on one key.
// Times are by the server's clock. Concurrent calls of all stores on the same client share a round trip, and nothing
// is sent twice. A Store is safe for concurrent use and needs no closing. Its only goroutine releases a lease that a
// failed Acquire may have been granted, and ends within Timeout.
//
// Redis must not evict the keys, so set maxmemory-policy noeviction. docs/redis.md lists the keys, and the commands
// that an ACL has to permit.
type Store struct {
	pipe     *redispipe.Pipe
	timeout  time.Duration
	failures redispipe.Failures // also contains the prefix of the keys
}

var (
	_ coord.TokenStore = (*Store)(nil)
	_ coord.LeaseStore = (*Store)(nil)
)

// New returns a store in the Redis of client. The client must be a *redis.Client (for a single server or Sentinel) or
// a *redis.ClusterClient, and the server Redis 6.2 or later. The caller closes the client. New does not connect to
// Redis. It returns an error if client is nil or of another type, or if an option is out of range.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	o.Prefix = cmp.Or(o.Prefix, "coord:")
	o.Timeout = cmp.Or(o.Timeout, 250*time.Millisecond)
	if err := option.Duration("redisstore", "Options.Timeout", o.Timeout, 0); err != nil {
		return nil, err
	}
	pipe, err := redispipe.For(client)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	failures := redispipe.Failures{Store: coord.ErrStore, KeyType: errKeyType, Prefix: o.Prefix}
	return &Store{pipe: pipe, timeout: o.Timeout, failures: failures}, nil
}

// run runs a script on a key. name is the key's name after the prefix. No argument may be a caller's []byte, because
// the arguments may be read after the call has returned.
func (s *Store) run(ctx context.Context, script *redispipe.Script, name string, args ...any) (redispipe.Reader, error) {
	call := redispipe.Call{Script: script, Keys: []string{s.failures.Prefix + name}, Args: args}
	r, err := s.pipe.Run(ctx, s.timeout, call)
	if err != nil {
		return redispipe.Reader{}, s.failures.Wrap(ctx, err)
	}
	return r.Reader(), nil
}

// runStatus runs a script whose reply is a status from 0 to max.
func (s *Store) runStatus(ctx context.Context, max int64, script *redispipe.Script, name string, args ...any) (int64, error) {
	r, err := s.run(ctx, script, name, args...)
	if err != nil {
		return 0, err
	}
	status := r.Int()
	if !r.Done() || status < 0 || status > max {
		return 0, errUnreadable
	}
	return status, nil
}
