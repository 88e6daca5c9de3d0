package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/session/storage"
)

// MaxBytes is how much a session may hold: the bytes of the names and values of
// its fields, and 64 more for each. A Commit that would exceed it is
// storage.ErrTooLarge.
const MaxBytes = 1 << 20

const (
	bytesPerField  = 64
	defaultTimeout = 250 * time.Millisecond
)

// Options configure a Store. The zero value is the default.
type Options struct {
	// Prefix begins the name of every key; the session's locator follows, or "user:" and
	// a digest of a user's name. Empty means "session:". Two applications on one Redis
	// need different ones.
	Prefix string

	// Timeout bounds every operation, all its calls of Redis together, from the moment
	// when it is called and with dialling, whatever the client's own timeouts; 0 means
	// 250 ms. The context of an operation may end it sooner.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Prefix == "" {
		o.Prefix = "session:"
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return o
}

func (o Options) check() error {
	if o.Timeout < 0 {
		return fmt.Errorf("redisstore: Options.Timeout: %v is negative", o.Timeout)
	}
	return nil
}

// Store is a storage.Store in Redis. It is safe for concurrent use, and
// holds nothing that needs closing. Load, Commit and Destroy cost one script call, and one
// more on the user's index to bind a session or to end one that is bound; Load
// costs time and bytes in proportion to the session, Commit to the change. List and
// RevokeAll cost one on the user's index and one for each session on it, many of which
// share a round trip, and one for each 64 entries of the index that are dropped.
type Store struct {
	prefix   string
	timeout  time.Duration
	pipe     *redispipe.Pipe
	failures redispipe.Failures
}

var _ storage.Store = (*Store)(nil)

// New returns a store over client, which stays the caller's to close. It makes no
// connection: a Redis that is down is an error of the operations, until it is back.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: no client")
	}
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	pipe, err := redispipe.For(client)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	failures := redispipe.Failures{Store: errRedis, KeyType: ErrForeign, Prefix: o.Prefix}
	return &Store{prefix: o.Prefix, timeout: o.Timeout, pipe: pipe, failures: failures}, nil
}

// Load implements storage.Store.
func (s *Store) Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	reply, err := s.run(ctx, s.deadline(), loadScript, l.Key(),
		lim.Idle.Microseconds(), lim.Absolute.Microseconds(), lim.Touch.Microseconds(), string(d[:]))
	if err != nil {
		return storage.Record{}, err
	}
	return parseRecord(reply)
}

// Commit implements storage.Store. A session that would be larger than MaxBytes
// is storage.ErrTooLarge, unless the change makes it smaller. A binding costs a second
// call, on the user's index; such a Commit takes at most 30 s, also if Options.Timeout is
// longer.
func (s *Store) Commit(ctx context.Context, d storage.Delta) error {
	deadline := s.deadline()
	if err := d.Validate(); err != nil {
		return err
	}
	args, size := commitArgs(d)
	if size > MaxBytes { // by itself, whatever is stored
		return storage.ErrTooLarge
	}
	if d.Bind != "" {
		deadline = time.Now().Add(min(s.timeout, bindTimeout))
		if err := s.index(ctx, deadline, d); err != nil {
			return err
		}
	}
	reply, err := s.run(ctx, deadline, commitScript, d.Locator.Key(), args...)
	if err != nil {
		return err
	}
	return commitError(reply)
}

func commitError(reply []any) error {
	switch number(reply) {
	case done:
		return nil
	case notFound:
		return storage.ErrGone
	case exists:
		return storage.ErrExists
	case tooLarge:
		return storage.ErrTooLarge
	case conflict:
		return storage.ErrConflict
	case notCounter:
		return storage.ErrNotCounter
	}
	return errUnreadable
}

// Destroy implements storage.Store. If the session was bound, a second call drops it from
// the user's index; an error of that one is none of Destroy's.
func (s *Store) Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error {
	deadline := s.deadline()
	reply, err := s.run(ctx, deadline, destroyScript, l.Key(), string(d[:]))
	if err != nil {
		return err
	}
	if len(reply) == 2 {
		if user, ok := reply[1].(string); ok {
			s.drop(ctx, deadline, user, []storage.Locator{l}, []time.Duration{removed})
			reply = reply[:1]
		}
	}
	switch number(reply) {
	case done:
		return nil
	case notFound:
		return storage.ErrGone
	}
	return errUnreadable
}

// deadline returns when an operation that begins now must have ended.
func (s *Store) deadline() time.Time { return time.Now().Add(s.timeout) }

// run runs a script on the key of that name, less the prefix. Its arguments are
// strings and numbers, never a caller's []byte: a round trip may outlive the call
// that it was for.
func (s *Store) run(ctx context.Context, deadline time.Time, script *redispipe.Script, name string, args ...any) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	call := redispipe.Call{Script: script, Keys: []string{s.prefix + name}, Args: args}
	reply, err := s.pipe.Run(ctx, time.Until(deadline), call)
	if err != nil {
		return nil, s.failures.Wrap(ctx, err)
	}
	return reply.Values, nil
}
