package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/internal/redispipe"
)

// Options configure a [Store]. The zero value is usable.
type Options struct {
	// Prefix begins the name of every key. Two applications on one Redis need different
	// ones. Default: "coord:".
	Prefix string
	// Timeout bounds every operation, from the moment when it is called and with
	// dialling, whatever the client's own timeouts. Default: 250 ms.
	Timeout time.Duration
}

const defaultTimeout = 250 * time.Millisecond

// Store is a [coord.TokenStore] and a [coord.LeaseStore] that processes share. Each operation is one
// script call on one key, by the server's clock; those of one moment, of all the stores on
// one client, share a round trip. Nothing is sent twice. It is safe for concurrent use and
// needs no closing: its only goroutine gives back what a failed Acquire may have got, and
// ends within Timeout.
//
// It must not be a Redis that evicts keys: maxmemory-policy noeviction. docs/redis.md has
// the keys and the ACL that a user needs.
type Store struct {
	pipe     *redispipe.Pipe
	timeout  time.Duration
	failures redispipe.Failures // has the prefix of the keys
}

var (
	_ coord.TokenStore = (*Store)(nil)
	_ coord.LeaseStore = (*Store)(nil)
)

// New returns a store over client (a single server, Sentinel or Cluster, Redis 6.2 or
// later), which stays the caller's to close. It makes no connection: a Redis that is down is
// an error of the operations, until it is back.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: no client")
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("redisstore: Options.Timeout: %v is negative", o.Timeout)
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

// run runs a script on the key of that name, less the prefix. Its arguments are strings and
// numbers, never a caller's []byte: a round trip may outlive the call that it was for.
func (s *Store) run(ctx context.Context, script *redispipe.Script, name string, args ...any) (*reply, error) {
	call := redispipe.Call{Script: script, Keys: []string{s.failures.Prefix + name}, Args: args}
	r, err := s.pipe.Run(ctx, s.timeout, call)
	if err != nil {
		return nil, s.failures.Wrap(ctx, err)
	}
	return &reply{values: r.Values}, nil
}
