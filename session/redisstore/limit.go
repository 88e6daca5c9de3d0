package redisstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// endOldest ends the oldest sessions of d's user until d.MaxPerUser are left. It returns ErrGone if the session of d is not
// one of them. Sessions are as old as their entries in the index. An entry whose session does not exist doesn't count,
// except the entry of d if committed is false.
//
// A Commit writes the entry, calls endOldest, saves the session, and calls endOldest again. The first call makes room. If
// Redis fails after that, too few sessions are left, but not too many. The second call is for concurrent logins: the last
// one to save its session finds the sessions of all others. If it ends its own session, no client has its secret yet.
func (s *Store) endOldest(ctx context.Context, deadline time.Time, d storage.Delta, committed bool) error {
	locators, err := s.readIndex(ctx, deadline, d.Bind, anySession)
	if err != nil {
		return err
	}
	if len(locators) > d.MaxPerUser {
		if !committed && !d.Create {
			if err := s.checkDigest(ctx, deadline, d); err != nil {
				return err
			}
		}
		entries, err := s.list(ctx, deadline, d.Bind, d.Limits)
		if err != nil {
			return err
		}
		exists := map[storage.Locator]bool{d.Locator: !committed}
		for _, e := range entries {
			exists[e.Locator] = true
		}
		locators = slices.DeleteFunc(locators, func(l storage.Locator) bool { return !exists[l] })
		ended := max(0, len(locators)-d.MaxPerUser)
		oldest := locators[:ended]
		if _, err := s.revoke(ctx, deadline, d.Bind, func(l storage.Locator) bool { return slices.Contains(oldest, l) }); err != nil {
			return err
		}
		locators = locators[ended:]
	}
	if !slices.Contains(locators, d.Locator) {
		return storage.ErrGone
	}
	return nil
}

// checkDigest returns ErrGone if the session of d does not exist or has another digest. Then the commit will fail, and must
// not end other sessions.
func (s *Store) checkDigest(ctx context.Context, deadline time.Time, d storage.Delta) error {
	rec, err := s.load(ctx, deadline, d.Locator, d.Digest, d.Limits)
	if rec.Old || errors.Is(err, storage.ErrNotFound) {
		return storage.ErrGone
	}
	return err
}
