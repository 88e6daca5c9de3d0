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

// A session and its user's index are two keys, on a Cluster often on two nodes, so that no script can change both. The
// index is written first. An entry stays for settleTime, even if its session does not exist or is not bound to the
// user. A Commit takes less time, because maxTimeout bounds it. However, if a node hangs for more than a minute and then
// runs a Commit that it received before, that Commit may bind a session that is no longer in the index.
//
// The entry of a session that was just removed is dropped at once. A concurrent Commit cannot bind the session any more,
// and a new session has a new locator.
const (
	settleTime = time.Minute
	maxTimeout = settleTime / 2
)

// These are the minimum ages at which an entry is dropped.
const (
	keep        = time.Duration(-1) // the entry is not dropped
	dropNow     = time.Duration(0)  // the session was removed
	dropSettled = settleTime        // the session has ended, or is not bound yet
)

// parallel is the number of sessions of a user that are read or removed at the same time.
const parallel = 64

// userKey returns the name of a user's index. It contains a hash instead of the user, who may be identified by personal
// data such as an email address.
func userKey(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "user:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

func anySession(storage.Locator) bool { return true }

// List implements session.Store.
func (s *Store) List(ctx context.Context, user string, lim storage.Limits) ([]storage.Entry, error) {
	return s.list(ctx, time.Now().Add(s.timeout), user, lim)
}

func (s *Store) list(ctx context.Context, deadline time.Time, user string, lim storage.Limits) ([]storage.Entry, error) {
	var mu sync.Mutex
	var entries []storage.Entry
	err := s.forEach(ctx, deadline, user, anySession, func(l storage.Locator) (time.Duration, error) {
		rec, err := decodeRecord(s.run(ctx, deadline, loadScript, l.Key(), lim.Idle.Microseconds(), lim.Absolute.Microseconds(), 0, "", user,
			lim.Remembered.Microseconds()))
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

// Revoke implements session.Store. If Options.Timeout is too short for all of a user's sessions, the next Revoke
// continues with the rest.
func (s *Store) Revoke(ctx context.Context, user string, match func(storage.Locator) bool) (int, error) {
	return s.revoke(ctx, time.Now().Add(s.timeout), user, match)
}

func (s *Store) revoke(ctx context.Context, deadline time.Time, user string, match func(storage.Locator) bool) (int, error) {
	var n atomic.Int64
	err := s.forEach(ctx, deadline, user, match, func(l storage.Locator) (time.Duration, error) {
		result, _, err := decodeRemove(s.run(ctx, deadline, removeScript, l.Key(), "", user))
		switch {
		case err != nil:
			return keep, err
		case result == removed:
			n.Add(1)
			return dropNow, nil
		}
		return dropSettled, nil
	})
	return int(n.Load()), err
}

// forEach calls f in parallel for the sessions in a user's index that match. f returns the minimum age at which the
// session's entry is dropped. After an error, forEach starts no more calls.
func (s *Store) forEach(ctx context.Context, deadline time.Time, user string, match func(storage.Locator) bool,
	f func(l storage.Locator) (age time.Duration, err error)) error {
	if user == "" {
		return ctx.Err()
	}
	locators, err := s.readIndex(ctx, deadline, user, match)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(locators, parallel) {
		ages := make([]time.Duration, len(chunk))
		var calls errgroup.Group
		for i, l := range chunk {
			calls.Go(func() (err error) {
				ages[i], err = f(l)
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

// readIndex returns the matching locators in a user's index, the earliest entry first.
func (s *Store) readIndex(ctx context.Context, deadline time.Time, user string, match func(storage.Locator) bool) ([]storage.Locator, error) {
	locators, err := decodeIndex(s.run(ctx, deadline, indexListScript, userKey(user)))
	return slices.DeleteFunc(locators, func(l storage.Locator) bool { return !match(l) }), err
}

// dropFromIndex drops the entry of each locator if it has at least the age in ages. If that fails, a later List or Revoke
// drops the entries.
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
