package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/session"
)

// A session and its user's index are two keys, on a Cluster often of two nodes, so that
// no script can change both. The index comes first, and an entry stays for settled,
// whatever its session looks like. A commit that has not come back within bindTimeout,
// which is less, is a failure: then nobody has got the secret of what it may still bind.
const (
	settled     = time.Minute
	bindTimeout = settled / 2
)

// userKey names the index of a user: its name may be personal, and of any length.
func userKey(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "user:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// enter notes in the index that a session is about to be bound.
func (s *Store) enter(ctx context.Context, d session.Delta) error {
	_, err := s.runAt(ctx, indexScript, 1, userKey(d.Bind), "add", string(d.Locator[:]), d.Limits.Absolute.Microseconds())
	return err
}

// List implements session.Store.
func (s *Store) List(ctx context.Context, user string, lim session.Limits) ([]session.Entry, error) {
	locators, err := s.locators(ctx, user)
	if err != nil {
		return nil, err
	}
	found := make([]*session.Entry, len(locators))
	err = each(ctx, locators, func(ctx context.Context, i int) error {
		reply, err := s.run(ctx, peekScript, recordReplies, locators[i], s.head(lim), user)
		if err != nil || reply[0] == notFound {
			return err
		}
		rec, err := parseRecord(reply)
		found[i] = &session.Entry{Locator: locators[i], Record: rec}
		return err
	})
	if err != nil {
		return nil, err
	}
	var entries []session.Entry
	var dead []session.Locator
	for i, e := range found {
		if e != nil {
			entries = append(entries, *e)
		} else {
			dead = append(dead, locators[i])
		}
	}
	s.drop(ctx, user, dead)
	return entries, nil
}

// Revoke implements session.Store.
func (s *Store) Revoke(ctx context.Context, user string, l session.Locator) error {
	_, err := s.revoke(ctx, user, l)
	return err
}

// RevokeAll implements session.Store.
func (s *Store) RevokeAll(ctx context.Context, user string, except session.Locator) (int, error) {
	locators, err := s.locators(ctx, user)
	if err != nil {
		return 0, err
	}
	locators = slices.DeleteFunc(locators, func(l session.Locator) bool { return l == except })
	var n atomic.Int64
	err = each(ctx, locators, func(ctx context.Context, i int) error {
		revoked, err := s.revoke(ctx, user, locators[i])
		if revoked {
			n.Add(1)
		}
		return err
	})
	if err != nil {
		return int(n.Load()), err
	}
	s.drop(ctx, user, locators)
	return int(n.Load()), nil
}

func (s *Store) revoke(ctx context.Context, user string, l session.Locator) (bool, error) {
	if user == "" {
		return false, ctx.Err()
	}
	reply, err := s.run(ctx, revokeScript, 1, l, user)
	if err != nil {
		return false, err
	}
	return reply[0] == done, nil
}

// locators returns what the index of a user has: all of the user's sessions, and some
// that are not any more, or not yet.
func (s *Store) locators(ctx context.Context, user string) ([]session.Locator, error) {
	if user == "" {
		return nil, ctx.Err()
	}
	reply, err := s.runAt(ctx, indexScript, 1, userKey(user), "all", "", 0)
	if err != nil {
		return nil, err
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

// drop takes entries out of an index whose sessions are not the user's. If that fails,
// the next one does it.
func (s *Store) drop(ctx context.Context, user string, dead []session.Locator) {
	if len(dead) == 0 {
		return
	}
	var all []byte
	for _, l := range dead {
		all = append(all, l[:]...)
	}
	_, _ = s.runAt(ctx, indexScript, 1, userKey(user), "drop", string(all), settled.Microseconds())
}

// each calls f for each of the locators, by its index, many at a time, so that their
// scripts share commands. After an error it begins no more.
func each(ctx context.Context, locators []session.Locator, f func(ctx context.Context, i int) error) error {
	for begin := 0; begin < len(locators); begin += lazy.Parallel {
		if err := together(ctx, begin, min(begin+lazy.Parallel, len(locators)), f); err != nil {
			return err
		}
	}
	return nil
}

// together calls f for each i from begin up to end, in a scope of their own: one moment
// for all of them, whatever the caller's scope is waiting for.
func together(ctx context.Context, begin, end int, f func(ctx context.Context, i int) error) error {
	scope := lazy.NewScope(ctx)
	defer scope.Close()
	var calls []lazy.Waiter
	for i := begin; i < end; i++ {
		calls = append(calls, lazy.In(scope, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx, i) }))
	}
	return lazy.All(ctx, calls...)
}
