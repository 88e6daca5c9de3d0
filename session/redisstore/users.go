package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lazyreq/lazyreq/session"
)

// A session and its user's index are two keys, on a Cluster often of two nodes, so that
// no script can change both. The index comes first, and an entry stays for settled,
// whatever its session looks like. A commit that has not come back within bindTimeout,
// which is less, is a failure: then no client has got the secret of what it may still bind.
const (
	settled     = time.Minute
	bindTimeout = settled / 2
)

// parallel is how many sessions of a user are looked at at a time.
const parallel = 64

// userKey names the index of a user: its name may be personal, and of any length.
func userKey(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "user:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// index adds a session to its user's index, before it is bound.
func (s *Store) index(ctx context.Context, deadline time.Time, d session.Delta) error {
	_, err := s.run(ctx, deadline, indexAddScript, userKey(d.Bind), string(d.Locator[:]), d.Limits.Absolute.Microseconds())
	return err
}

// List implements session.Store.
func (s *Store) List(ctx context.Context, user string, lim session.Limits) ([]session.Entry, error) {
	var mu sync.Mutex
	var entries []session.Entry
	err := s.visit(ctx, user, func(l session.Locator, deadline time.Time) (ended bool, err error) {
		rec, err := s.peek(ctx, deadline, l, user, lim)
		if errors.Is(err, session.ErrNotFound) {
			return true, nil
		}
		mu.Lock()
		defer mu.Unlock()
		entries = append(entries, session.Entry{Locator: l, Record: rec})
		return false, err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

func (s *Store) peek(ctx context.Context, deadline time.Time, l session.Locator, user string, lim session.Limits) (session.Record, error) {
	reply, err := s.run(ctx, deadline, peekScript, l.Key(), lim.Idle.Microseconds(), lim.Absolute.Microseconds(), user)
	if err != nil {
		return session.Record{}, err
	}
	return parseRecord(reply)
}

// Revoke implements session.Store.
func (s *Store) Revoke(ctx context.Context, user string, l session.Locator) error {
	if user == "" {
		return ctx.Err()
	}
	_, err := s.revoke(ctx, s.deadline(), user, l)
	return err
}

// RevokeAll implements session.Store. If Options.Timeout is too short for all of a user's
// sessions, the next RevokeAll goes on where this one ended.
func (s *Store) RevokeAll(ctx context.Context, user string, except session.Locator) (int, error) {
	var n atomic.Int64
	err := s.visit(ctx, user, func(l session.Locator, deadline time.Time) (ended bool, err error) {
		if l == except {
			return false, nil
		}
		revoked, err := s.revoke(ctx, deadline, user, l)
		if revoked {
			n.Add(1)
		}
		return true, err
	})
	return int(n.Load()), err
}

func (s *Store) revoke(ctx context.Context, deadline time.Time, user string, l session.Locator) (bool, error) {
	reply, err := s.run(ctx, deadline, revokeScript, l.Key(), user)
	if err != nil {
		return false, err
	}
	switch number(reply) {
	case done:
		return true, nil
	case notFound:
		return false, nil
	}
	return false, errUnreadable
}

// visit calls f for each session on a user's index, for many of them at a time. Where f says
// that there is no session of the user's any more, the entry is dropped. After an error visit
// begins no more calls.
func (s *Store) visit(ctx context.Context, user string, f func(l session.Locator, deadline time.Time) (ended bool, err error)) error {
	deadline := s.deadline()
	locators, err := s.locators(ctx, deadline, user)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(locators, parallel) {
		ended := make([]bool, len(some))
		var calls errgroup.Group
		for i, l := range some {
			calls.Go(func() (err error) {
				ended[i], err = f(l, deadline)
				return err
			})
		}
		if err := calls.Wait(); err != nil {
			return err
		}
		s.drop(ctx, deadline, user, some, ended)
	}
	return nil
}

// locators returns what the index of a user has: all of the user's sessions, and some
// that are not any more, or not yet.
func (s *Store) locators(ctx context.Context, deadline time.Time, user string) ([]session.Locator, error) {
	if user == "" {
		return nil, ctx.Err()
	}
	reply, err := s.run(ctx, deadline, indexListScript, userKey(user))
	if err != nil {
		return nil, err
	}
	if len(reply) != 1 {
		return nil, errUnreadable
	}
	members, ok := reply[0].([]any)
	if !ok {
		return nil, errUnreadable
	}
	var locators []session.Locator
	for _, m := range members {
		if text, ok := m.(string); ok && len(text) == len(session.Locator{}) {
			locators = append(locators, session.Locator([]byte(text)))
		}
	}
	return locators, nil
}

// drop drops the entries of sessions that have ended. If that fails, a later call does it.
func (s *Store) drop(ctx context.Context, deadline time.Time, user string, locators []session.Locator, ended []bool) {
	args := []any{settled.Microseconds()}
	for i, l := range locators {
		if ended[i] {
			args = append(args, string(l[:]))
		}
	}
	if len(args) > 1 {
		_, _ = s.run(ctx, deadline, indexDropScript, userKey(user), args...)
	}
}
