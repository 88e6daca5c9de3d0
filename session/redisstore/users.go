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

	"github.com/lazyreq/lazyreq/session/storage"
)

// A session and its user's index are two keys, on a Cluster often of two nodes, so that
// no script can change both. The index comes first, and an entry stays for settled,
// whatever its session looks like. A commit that has not come back within bindTimeout,
// which is less, is a failure: then no client has got the secret of what it may still bind.
//
// The entry of a session that was just removed goes at once: a commit on its way finds it
// gone, and one that creates has a locator of its own.
const (
	settled     = time.Minute
	bindTimeout = settled / 2
)

// What becomes of an entry: how old it must be to be dropped, if it is.
const (
	keep    = time.Duration(-1)
	removed = time.Duration(0)
	ended   = settled // or is not bound yet
)

// parallel is how many sessions of a user are looked at at a time.
const parallel = 64

// userKey names the index of a user: its name may be personal, and of any length.
func userKey(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "user:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// index adds a session to its user's index, before it is bound.
func (s *Store) index(ctx context.Context, deadline time.Time, d storage.Delta) error {
	_, err := s.run(ctx, deadline, indexAddScript, userKey(d.Bind), string(d.Locator[:]), d.Limits.Absolute.Microseconds())
	return err
}

// List implements storage.Store.
func (s *Store) List(ctx context.Context, user string, lim storage.Limits) ([]storage.Entry, error) {
	var mu sync.Mutex
	var entries []storage.Entry
	err := s.visit(ctx, user, func(l storage.Locator, deadline time.Time) (age time.Duration, err error) {
		rec, err := s.peek(ctx, deadline, l, user, lim)
		if errors.Is(err, storage.ErrNotFound) {
			return ended, nil
		}
		mu.Lock()
		defer mu.Unlock()
		entries = append(entries, storage.Entry{Locator: l, Record: rec})
		return keep, err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

func (s *Store) peek(ctx context.Context, deadline time.Time, l storage.Locator, user string, lim storage.Limits) (storage.Record, error) {
	reply, err := s.run(ctx, deadline, peekScript, l.Key(), lim.Idle.Microseconds(), lim.Absolute.Microseconds(), user)
	if err != nil {
		return storage.Record{}, err
	}
	return parseRecord(reply)
}

// Revoke implements storage.Store.
func (s *Store) Revoke(ctx context.Context, user string, l storage.Locator) error {
	if user == "" {
		return ctx.Err()
	}
	deadline := s.deadline()
	age, err := s.revoke(ctx, deadline, user, l)
	if age == removed {
		s.drop(ctx, deadline, user, []storage.Locator{l}, []time.Duration{age})
	}
	return err
}

// RevokeAll implements storage.Store. If Options.Timeout is too short for all of a user's
// sessions, the next RevokeAll goes on where this one ended.
func (s *Store) RevokeAll(ctx context.Context, user string, except storage.Locator) (int, error) {
	var n atomic.Int64
	err := s.visit(ctx, user, func(l storage.Locator, deadline time.Time) (age time.Duration, err error) {
		if l == except {
			return keep, nil
		}
		age, err = s.revoke(ctx, deadline, user, l)
		if age == removed {
			n.Add(1)
		}
		return age, err
	})
	return int(n.Load()), err
}

// revoke removes a session of the user's, and returns what becomes of its entry.
func (s *Store) revoke(ctx context.Context, deadline time.Time, user string, l storage.Locator) (age time.Duration, err error) {
	reply, err := s.run(ctx, deadline, revokeScript, l.Key(), user)
	if err != nil {
		return keep, err
	}
	switch number(reply) {
	case done:
		return removed, nil
	case notFound:
		return ended, nil
	}
	return keep, errUnreadable
}

// visit calls f for each session on a user's index, for many of them at a time, and drops
// the entries that are as old as f returns. After an error visit begins no more calls.
func (s *Store) visit(ctx context.Context, user string, f func(l storage.Locator, deadline time.Time) (age time.Duration, err error)) error {
	deadline := s.deadline()
	locators, err := s.locators(ctx, deadline, user)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(locators, parallel) {
		ages := make([]time.Duration, len(some))
		var calls errgroup.Group
		for i, l := range some {
			calls.Go(func() (err error) {
				ages[i], err = f(l, deadline)
				return err
			})
		}
		if err := calls.Wait(); err != nil {
			return err
		}
		s.drop(ctx, deadline, user, some, ages)
	}
	return nil
}

// locators returns what the index of a user has: all of the user's sessions, and some
// that are not any more, or not yet.
func (s *Store) locators(ctx context.Context, deadline time.Time, user string) ([]storage.Locator, error) {
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
	var locators []storage.Locator
	for _, m := range members {
		if text, ok := m.(string); ok && len(text) == len(storage.Locator{}) {
			locators = append(locators, storage.Locator([]byte(text)))
		}
	}
	return locators, nil
}

// drop drops the entries that are as old as ages has it. If that fails, a later List or
// RevokeAll does it.
func (s *Store) drop(ctx context.Context, deadline time.Time, user string, locators []storage.Locator, ages []time.Duration) {
	var args []any
	for i, l := range locators {
		if ages[i] != keep {
			args = append(args, ages[i].Microseconds(), string(l[:]))
		}
	}
	if len(args) > 0 {
		_, _ = s.run(ctx, deadline, indexDropScript, userKey(user), args...)
	}
}
