// Package redisstore keeps sessions in Redis, so that several servers share them.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	store, err := redisstore.New(client, redisstore.Options{})
//	m, err := session.New(store, session.Options{})
//
// A session is one hash, with one field for each field of the session. Each operation on it is one script, so that
// writers of different fields never undo each other and nothing brings back a destroyed session. Times are the
// server's. Concurrent calls of all stores on one client share a round trip, and nothing is sent twice.
//
// A session that is bound to a user also has an entry in the user's index, a sorted set that is often on another node
// of a Cluster. The entry is written first, so that every bound session can be found without a scan. The session itself
// decides to whom it is bound, so a wrong entry does no harm. Destroy and Revoke drop the entries of the sessions that
// they remove. Later calls of List and Revoke drop other entries that are wrong. A session ends before its entry does:
// at the latest by the absolute limit under which it was bound. The clocks of a Cluster's nodes must agree within a
// minute.
//
// If the number of a user's sessions is limited, a login ends the oldest ones before it saves its own session, and counts
// again afterwards. At any moment, at most the maximum of sessions whose logins have succeeded can be loaded. If Redis
// fails in between, the login fails, and fewer sessions may be left.
//
// Every key has an expiry; the next touch or save restores a lost one. A longer limit takes effect for a session with
// its next touch, a shorter one at once.
//
// Redis holds only digests of the secrets: its memory, dumps and replication stream cannot be used to log in. They
// contain the values, which are not encrypted.
//
// If Redis is out of memory, it refuses saves, and loads that touch. If it evicts keys or loses writes in a failover,
// sessions are lost, a session that was destroyed just before may exist again, and Revoke doesn't find a session
// whose entry was lost.
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

// A Store returns the errors of package storage, these errors, and errors that Redis has sent.
var (
	// ErrNotSent means that a call was not sent to Redis. No connection could be made, the handshake failed, or no
	// connection was free within Options.Timeout. The session is unchanged. After a Revoke, some sessions may be
	// revoked. After a Commit with Delta.MaxPerUser, other sessions may have ended, and the session may be saved.
	ErrNotSent = redispipe.ErrNotSent
	// ErrNoReply means that Redis did not reply within Options.Timeout, that the connection broke, or that the reply
	// is unreadable. The operation may have been done, or may still be.
	ErrNoReply = redispipe.ErrNoReply
	// ErrKeyType is the error of Load, Commit and Destroy for a key that does not hold a complete session. The key
	// stays unchanged. ErrKeyType wraps [storage.ErrCorrupt], so a manager treats the session as missing.
	ErrKeyType = option.WithText("redisstore: the key does not hold a session", storage.ErrCorrupt)

	errRedis      = errors.New("store unavailable")
	errUnreadable = fmt.Errorf("%w: %w", errRedis, redispipe.ErrUnreadable)
)

// MaxBytes bounds the size of a session: the bytes of the names and values of its fields, and 64 more for each. A
// Commit that would exceed it fails with [storage.ErrTooLarge], unless it makes the session smaller.
const MaxBytes = 1 << 20

const bytesPerField = 64

// Options configures a [Store]. The zero value means the defaults.
type Options struct {
	// Prefix begins the name of every key. The session's locator follows, or "user:" and a digest of a user's name.
	// Two applications on one Redis need different prefixes. Default: "session:".
	Prefix string
	// Timeout bounds every operation from the moment of the call, with all its calls to Redis and with dialling. The
	// client's own timeouts have no effect. The context of an operation may end it sooner. Default: 250 ms; at most
	// 30 s.
	Timeout time.Duration
}

// Store is a session.Store in Redis. It is safe for concurrent use and needs no closing.
//
// Load, Commit and Destroy cost one script call, and one more on the user's index to bind a session or to end a bound
// one. Delta.MaxPerUser costs two more calls, and what Load, List and Revoke cost if the user has too many sessions. Load
// costs time and bytes in proportion to the session, Commit to the change. List and Revoke make one call for the user's
// index, one for each session, and one for each 64 entries that they drop. Many of these calls share a round trip.
type Store struct {
	timeout  time.Duration
	pipe     *redispipe.Pipe
	failures redispipe.Failures // has the prefix of the keys
}

// New returns a store over client, a *redis.Client (for a single server or Sentinel) or a *redis.ClusterClient, for
// Redis 6.2 or later. The caller closes the client. New does not connect to Redis. It returns an error if client is
// nil or of another type, or if an option is invalid.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	o.Prefix = cmp.Or(o.Prefix, "session:")
	o.Timeout = cmp.Or(o.Timeout, 250*time.Millisecond)
	if o.Timeout < 0 || o.Timeout > maxTimeout {
		return nil, option.Errorf("redisstore", "Options.Timeout", "is %v, want 0s to %v", o.Timeout, maxTimeout)
	}
	pipe, err := redispipe.For(client)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	failures := redispipe.Failures{Store: errRedis, KeyType: ErrKeyType, Prefix: o.Prefix}
	return &Store{timeout: o.Timeout, pipe: pipe, failures: failures}, nil
}

// Load implements session.Store.
func (s *Store) Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	return s.load(ctx, time.Now().Add(s.timeout), l, d, lim)
}

func (s *Store) load(ctx context.Context, deadline time.Time, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	args := []any{lim.Idle.Microseconds(), lim.Absolute.Microseconds(), lim.Touch.Microseconds(), string(d[:])}
	if lim.Remembered > 0 || lim.Device != "" {
		args = append(args, lim.Device, lim.Remembered.Microseconds())
	}
	return decodeRecord(s.run(ctx, deadline, loadScript, l.Key(), args...))
}

// Commit implements session.Store. If a user has too many sessions, Delta.MaxPerUser needs enough time to read all of them:
// with several thousand, Options.Timeout can be too short. Then logins fail until Revoke has ended some sessions.
func (s *Store) Commit(ctx context.Context, d storage.Delta) error {
	deadline := time.Now().Add(s.timeout)
	args, size := commitArgs(d)
	if size > MaxBytes { // whatever the stored session contains
		return storage.ErrTooLarge
	}
	if d.Bind != "" {
		_, err := s.run(ctx, deadline, indexAddScript, userKey(d.Bind), string(d.Locator[:]), d.Limits.For(d.Remember).Absolute.Microseconds())
		if err != nil {
			return err
		}
	}
	if d.MaxPerUser > 0 {
		if err := s.endOldest(ctx, deadline, d, false); err != nil {
			return err
		}
	}
	err := decodeCommit(s.run(ctx, deadline, commitScript, d.Locator.Key(), args...))
	if err == nil && d.MaxPerUser > 0 {
		err = s.endOldest(ctx, deadline, d, true)
	}
	return err
}

// Destroy implements session.Store. It succeeds even if it cannot drop the session's entry in the user's index.
func (s *Store) Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error {
	deadline := time.Now().Add(s.timeout)
	result, user, err := decodeRemove(s.run(ctx, deadline, removeScript, l.Key(), string(d[:]), ""))
	if user != "" {
		s.dropFromIndex(ctx, deadline, user, []storage.Locator{l}, []time.Duration{dropNow})
	}
	if result == removeRefused {
		return storage.ErrGone
	}
	return err
}

// run runs a script on the key whose name follows the prefix. The arguments must be strings and numbers. A []byte of the
// caller could change while it is being sent, because a round trip may continue after the call.
func (s *Store) run(ctx context.Context, deadline time.Time, script *redispipe.Script, name string, args ...any) (redispipe.Reader, error) {
	if err := ctx.Err(); err != nil {
		return redispipe.Reader{}, err
	}
	call := redispipe.Call{Script: script, Keys: []string{s.failures.Prefix + name}, Args: args}
	reply, err := s.pipe.Run(ctx, time.Until(deadline), call)
	if err != nil {
		return redispipe.Reader{}, s.failures.Wrap(ctx, err)
	}
	return reply.Reader(), nil
}
