package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/session"
)

// MaxBytes is how much a session may hold: the bytes of the names and values of
// its fields, and 64 more for each. A Commit that would exceed it is
// session.ErrTooLarge.
const MaxBytes = 1 << 20

const bytesPerField = 64

// Options configure a Store. The zero value is the default.
type Options struct {
	// Prefix begins the name of every key; the session's locator follows, or "user:" and
	// a digest of a user's name. Empty means "session:". Two applications on one Redis
	// need different ones.
	Prefix string

	// Timeout bounds the wait for Redis in every operation, whatever the client's
	// own timeouts; 0 means 250 ms.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Prefix == "" {
		o.Prefix = "session:"
	}
	return o
}

func (o Options) check() error {
	if o.Timeout < 0 {
		return fmt.Errorf("redisstore: Options.Timeout: %v is negative", o.Timeout)
	}
	return nil
}

// Store is a session.Store in Redis. It is safe for concurrent use, and
// holds nothing that needs closing. Load, Commit and Destroy cost one script call; Load
// costs time and bytes in proportion to the session, Commit to the change. List and
// RevokeAll cost two on the user's index, and one for each session on it, many of which
// share a command.
type Store struct {
	prefix string
	pipe   *redispipe.Pipe
	known  atomic.Pointer[knownLimits] // the limits that were asked for last
}

var _ session.Store = (*Store)(nil)

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
	pipe, err := redispipe.For(client, redispipe.Options{Timeout: o.Timeout})
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	return &Store{prefix: o.Prefix, pipe: pipe}, nil
}

// Load implements session.Store.
func (s *Store) Load(ctx context.Context, l session.Locator, d session.Digest, lim session.Limits) (session.Record, error) {
	reply, err := s.run(ctx, loadScript, recordReplies, l, s.head(lim), string(d[:]))
	if err != nil {
		return session.Record{}, err
	}
	if reply[0] == notFound {
		return session.Record{}, session.ErrNotFound
	}
	return parseRecord(reply)
}

// Commit implements session.Store. A session that would be larger than MaxBytes
// is session.ErrTooLarge, unless the change makes it smaller. A binding costs a second
// call, on the user's index.
func (s *Store) Commit(ctx context.Context, d session.Delta) error {
	if err := d.Validate(); err != nil {
		return err
	}
	args, size := s.commitArgs(d)
	if size > MaxBytes { // by itself, whatever is stored
		return session.ErrTooLarge
	}
	if d.Bind != "" {
		var leave context.CancelFunc
		ctx, leave = context.WithTimeout(ctx, bindTimeout)
		defer leave()
		if err := s.enter(ctx, d); err != nil {
			return err
		}
	}
	reply, err := s.run(ctx, commitScript, 1, d.Locator, args...)
	if err != nil {
		return err
	}
	return commitError(reply[0])
}

func commitError(answer any) error {
	switch answer {
	case done:
		return nil
	case notFound:
		return session.ErrGone
	case exists:
		return session.ErrExists
	case tooLarge:
		return session.ErrTooLarge
	case conflict:
		return session.ErrConflict
	case notCounter:
		return session.ErrNotCounter
	}
	return errUnreadable
}

// Destroy implements session.Store.
func (s *Store) Destroy(ctx context.Context, l session.Locator, d session.Digest) error {
	reply, err := s.run(ctx, destroyScript, 1, l, string(d[:]))
	if err != nil {
		return err
	}
	switch reply[0] {
	case done:
		return nil
	case notFound:
		return session.ErrGone
	}
	return errUnreadable
}

// run runs a script on the session at l.
func (s *Store) run(ctx context.Context, script *redispipe.Script, replies int, l session.Locator, args ...any) ([]any, error) {
	return s.runAt(ctx, script, replies, l.Key(), args...)
}

// runAt runs a script on the key of that name, less the prefix. Its arguments are
// strings, numbers and heads, never a caller's []byte: a round trip may outlive the call
// that it was for.
func (s *Store) runAt(ctx context.Context, script *redispipe.Script, replies int, name string, args ...any) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	reply, err := s.pipe.Run(ctx, redispipe.Call{
		Script: script, Keys: []string{s.prefix + name}, Args: args, Replies: replies,
	})
	if err != nil {
		return nil, s.failure(err)
	}
	return reply.Values, nil
}
