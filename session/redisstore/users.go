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

// A session and its user's index are two keys, on a Cluster often on two nodes, so that
// no script can change both. The index is written first, and an entry stays for settleTime,
// even if its session does not exist or is not the user's. A commit that takes longer than
// bindTimeout, which is less, is a failure: then no client has got the secret of the
// session that it may still bind.
//
// The entry of a session that was just removed is dropped at once: a commit under way finds
// the session gone, and one that creates has a locator of its own.
const (
	settleTime  = time.Minute
	bindTimeout = settleTime / 2
)

// How old an entry must be to be dropped.
const (
	keep        = time.Duration(-1) // never
	dropNow     = time.Duration(0)  // its session was removed
	dropSettled = settleTime        // its session has ended, or is not bound yet
)

// parallel is how many sessions of a user are read or removed at a time.
const parallel = 64

// userKey names the index of a user with a hash, because a user's name may be personal, and
// of any length.
func userKey(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "user:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// List implements session.Store.
func (s *Store) List(ctx context.Context, user string, lim storage.Limits) ([]storage.Entry, error) {
	var mu sync.Mutex
	var entries []storage.Entry
	err := s.forEach(ctx, user, func(l storage.Locator, deadline time.Time) (time.Duration, error) {
		reply, err := s.run(ctx, deadline, loadScript, l.Key(), lim.Idle.Microseconds(), lim.Absolute.Microseconds(), 0, "", user)
		if err != nil {
			return keep, err
		}
		rec, err := parseRecord(reply)
		if errors.Is(err, storage.ErrNotFound) {
			return dropSettled, nil
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

// Revoke implements session.Store.
func (s *Store) Revoke(ctx context.Context, user string, l storage.Locator) error {
	if user == "" {
		return ctx.Err()
	}
	deadline := time.Now().Add(s.timeout)
	result, _, err := s.remove(ctx, deadline, l, "", user)
	if result == removeDone {
		s.dropFromIndex(ctx, deadline, user, []storage.Locator{l}, []time.Duration{dropNow})
	}
	return err
}

// RevokeAll implements session.Store. If Options.Timeout is too short for all of a user's
// sessions, the next RevokeAll continues where this one ended.
func (s *Store) RevokeAll(ctx context.Context, user string, except storage.Locator) (int, error) {
	var n atomic.Int64
	err := s.forEach(ctx, user, func(l storage.Locator, deadline time.Time) (time.Duration, error) {
		if l == except {
			return keep, nil
		}
		result, _, err := s.remove(ctx, deadline, l, "", user)
		switch {
		case err != nil:
			return keep, err
		case result == removeDone:
			n.Add(1)
			return dropNow, nil
		}
		return dropSettled, nil
	})
	return int(n.Load()), err
}

// forEach calls f for each session in a user's index, in parallel, and drops
// the entries that are as old as f returns. After an error it begins no more calls.
func (s *Store) forEach(ctx context.Context, user string, f func(l storage.Locator, deadline time.Time) (age time.Duration, err error)) error {
	if user == "" {
		return ctx.Err()
	}
	deadline := time.Now().Add(s.timeout)
	reply, err := s.run(ctx, deadline, indexListScript, userKey(user))
	if err != nil {
		return err
	}
	locators, err := parseIndex(reply)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(locators, parallel) {
		ages := make([]time.Duration, len(chunk))
		var calls errgroup.Group
		for i, l := range chunk {
			calls.Go(func() (err error) {
				ages[i], err = f(l, deadline)
				return err
			})
		}
		if err := calls.Wait(); err != nil {
			return err
		}
		s.dropFromIndex(ctx, deadline, user, chunk, ages)
	}
	return nil
}

// addToIndex adds a session to its user's index, before it is bound.
func (s *Store) addToIndex(ctx context.Context, deadline time.Time, d storage.Delta) error {
	_, err := s.run(ctx, deadline, indexAddScript, userKey(d.Bind), string(d.Locator[:]), d.Limits.Absolute.Microseconds())
	return err
}

// dropFromIndex drops the entries that are at least as old as ages requires. If that fails, a
// later List or RevokeAll drops them.
func (s *Store) dropFromIndex(ctx context.Context, deadline time.Time, user string, locators []storage.Locator, ages []time.Duration) {
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
