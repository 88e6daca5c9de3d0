package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/session/storage"
)

// MaxBytes bounds the size of a session: the bytes of the names and values of
// its fields, and 64 more for each. A Commit that would exceed it is
// [storage.ErrTooLarge].
const MaxBytes = 1 << 20

const bytesPerField = 64

// Options configure a [Store]. The zero value means the defaults.
type Options struct {
	// Prefix begins the name of every key; the session's locator follows, or "user:" and
	// a digest of a user's name. Two applications on one Redis need different ones.
	// Default: "session:".
	Prefix string

	// Timeout bounds every operation, with all its calls to Redis and with dialling, from
	// the moment of the call, whatever the client's own timeouts. The context of an
	// operation may end it sooner. Default: 250 ms.
	Timeout time.Duration
}

// Store is a session.Store in Redis. It is safe for concurrent use, and needs no Close.
//
// Load, Commit and Destroy cost one script call, and one more on the user's index to bind a
// session or to end one that is bound. Load costs time and bytes in proportion to the
// session, Commit to the change. List and RevokeAll cost one call on the user's index and
// one for each session in it, many of which share a round trip, and one for each 64
// entries of the index that are dropped.
type Store struct {
	prefix   string
	timeout  time.Duration
	pipe     *redispipe.Pipe
	failures redispipe.Failures
}

// New returns a store over client, which remains the caller's to close. It does not connect
// to Redis; while Redis is down, operations return errors. It returns an error if client is
// nil, or one that names the invalid option.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: no client")
	}
	o.Prefix = cmp.Or(o.Prefix, "session:")
	o.Timeout = cmp.Or(o.Timeout, 250*time.Millisecond)
	if err := option.Duration("redisstore", "Options.Timeout", o.Timeout, 0); err != nil {
		return nil, err
	}
	pipe, err := redispipe.For(client)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	failures := redispipe.Failures{Store: errRedis, KeyType: ErrKeyType, Prefix: o.Prefix}
	return &Store{prefix: o.Prefix, timeout: o.Timeout, pipe: pipe, failures: failures}, nil
}

// Load implements session.Store.
func (s *Store) Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	reply, err := s.run(ctx, time.Now().Add(s.timeout), loadScript, l.Key(),
		lim.Idle.Microseconds(), lim.Absolute.Microseconds(), lim.Touch.Microseconds(), string(d[:]))
	if err != nil {
		return storage.Record{}, err
	}
	return parseRecord(reply)
}

// Commit implements session.Store. A session that would be larger than MaxBytes
// is [storage.ErrTooLarge], unless the change makes it smaller. Binding costs a second
// call, on the user's index; such a Commit takes at most 30 s, even if Options.Timeout is
// longer.
func (s *Store) Commit(ctx context.Context, d storage.Delta) error {
	deadline := time.Now().Add(s.commitTimeout(d))
	if err := d.Validate(); err != nil {
		return err
	}
	args, size := commitArgs(d)
	if size > MaxBytes { // by itself, whatever is stored
		return storage.ErrTooLarge
	}
	if d.Bind != "" {
		if err := s.addToIndex(ctx, deadline, d); err != nil {
			return err
		}
	}
	reply, err := s.run(ctx, deadline, commitScript, d.Locator.Key(), args...)
	if err != nil {
		return err
	}
	return commitError(reply)
}

func (s *Store) commitTimeout(d storage.Delta) time.Duration {
	if d.Bind == "" {
		return s.timeout
	}
	return min(s.timeout, bindTimeout)
}

// Destroy implements session.Store. If the session was bound, a second call drops it from
// the user's index; Destroy succeeds even if that call fails.
func (s *Store) Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error {
	deadline := time.Now().Add(s.timeout)
	result, user, err := s.remove(ctx, deadline, l, string(d[:]), "")
	if user != "" {
		s.dropFromIndex(ctx, deadline, user, []storage.Locator{l}, []time.Duration{dropNow})
	}
	if result == removeRefused {
		return storage.ErrGone
	}
	return err
}

// remove removes the session that has the digest, or is bound to the user if digest is
// empty. It returns the user to whom a removed session was bound.
func (s *Store) remove(ctx context.Context, deadline time.Time, l storage.Locator, digest, user string) (result int64, owner string, err error) {
	reply, err := s.run(ctx, deadline, removeScript, l.Key(), digest, user)
	if err != nil {
		return 0, "", err
	}
	return parseRemove(reply)
}

// run runs a script on the key of that name, without the prefix. Its arguments are
// strings and numbers, never a caller's []byte, because a round trip may outlive the call.
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
