package redisstore_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/redisstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

// operation is a call of one method of a store.
type operation struct {
	name string
	run  func(ctx context.Context, s session.Store, v visitor) error
}

// onSessions are the operations that use a single session.
var onSessions = []operation{
	{"load", func(ctx context.Context, s session.Store, v visitor) error {
		_, err := s.Load(ctx, v.locator, v.digest, limits)
		return err
	}},
	{"create", func(ctx context.Context, s session.Store, v visitor) error {
		d := v.delta("user", "s3cret-value")
		d.Create = true
		return s.Commit(ctx, d)
	}},
	{"change", func(ctx context.Context, s session.Store, v visitor) error {
		return s.Commit(ctx, v.delta("user", "s3cret-value"))
	}},
	{"destroy", func(ctx context.Context, s session.Store, v visitor) error {
		return s.Destroy(ctx, v.locator, v.digest)
	}},
}

// onUsers are the operations that use a user's index.
var onUsers = []operation{
	{"bind", func(ctx context.Context, s session.Store, v visitor) error {
		d := v.delta()
		d.Create, d.Bind = true, "s3cret-user"
		return s.Commit(ctx, d)
	}},
	{"bind within a maximum", func(ctx context.Context, s session.Store, v visitor) error {
		d := v.delta()
		d.Create, d.Bind, d.MaxPerUser = true, "s3cret-user", 2
		return s.Commit(ctx, d)
	}},
	{"list", func(ctx context.Context, s session.Store, _ visitor) error {
		_, err := s.List(ctx, "s3cret-user", limits)
		return err
	}},
	{"revoke", func(ctx context.Context, s session.Store, v visitor) error {
		return second(s.Revoke(ctx, "s3cret-user", v.only))
	}},
	{"revoke all", func(ctx context.Context, s session.Store, v visitor) error {
		_, err := s.Revoke(ctx, "s3cret-user", anySession)
		return err
	}},
}

// everything runs operations in order and returns the error of each, by name.
func everything(t *testing.T, s session.Store, v visitor, operations ...[]operation) map[string]error {
	errs := make(map[string]error)
	for _, o := range slices.Concat(operations...) {
		errs[o.name] = o.run(t.Context(), s, v)
	}
	return errs
}

// fails calls every operation. It fails the test unless each returns an error of the store within two seconds in all.
func fails(t *testing.T, s session.Store) (errs map[string]error) {
	t.Helper()
	began := time.Now()
	errs = everything(t, s, newVisitor(), onSessions, onUsers)
	require.Less(t, time.Since(began), 2*time.Second)
	for name, err := range errs {
		require.ErrorContains(t, err, "store unavailable: ", name)
		for _, answer := range []error{storage.ErrNotFound, storage.ErrGone, storage.ErrExists, storage.ErrTooLarge} {
			require.NotErrorIs(t, err, answer, name)
		}
	}
	return errs
}

// recovers waits until a session can be created and loaded.
func recovers(t *testing.T, s session.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		v := newVisitor()
		d := v.delta("user", "ada")
		d.Create = true
		if s.Commit(t.Context(), d) != nil {
			return false
		}
		_, err := s.Load(t.Context(), v.locator, v.digest, limits)
		return err == nil
	}, 5*time.Second, 10*time.Millisecond)
}

func TestRedisDownAndBack(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	server.Stop()
	s := newStore(t, server.Client(nil), redisstore.Options{Timeout: 100 * time.Millisecond})
	server.RestartTwice(func() {
		for name, err := range fails(t, s) {
			require.ErrorIs(t, err, redisstore.ErrNotSent, name)
			require.NotErrorIs(t, err, redisstore.ErrNoReply, name)
		}
	}, func() { recovers(t, s) })
}

func TestCallToHungRedisIsSent(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	for _, o := range slices.Concat(onSessions, onUsers) {
		s := newStore(t, server.Client(nil), redisstore.Options{Timeout: 100 * time.Millisecond})
		recovers(t, s)
		resume := server.Pause()
		err := o.run(t.Context(), s, newVisitor())
		resume()
		require.ErrorIs(t, err, redisstore.ErrNoReply, o.name)
		require.NotErrorIs(t, err, redisstore.ErrNotSent, o.name)
	}
}

func TestFullRedisRefusesWholeSaves(t *testing.T) {
	server := testhost.StartRedis(t)
	c := server.Client(nil)
	s := newStore(t, c, patient)
	v := newVisitor().created(t, s, "user", "ada", "cart", "3")
	before := c.HGetAll(t.Context(), v.key()).Val()
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	d := v.delta("user", "eve")
	d.Changes["cart"] = storage.Change{Op: storage.OpDelete}
	err := s.Commit(t.Context(), d)
	require.True(t, redis.HasErrorPrefix(err, "OOM"), "%v", err)
	require.Equal(t, before, c.HGetAll(t.Context(), v.key()).Val())
	_, err = s.Load(t.Context(), v.locator, v.digest, limits)
	require.NoError(t, err, "what needs no memory goes on")
	require.NoError(t, s.Destroy(t.Context(), v.locator, v.digest))
}

func TestForeignKeyIsLeftAlone(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	without := func(field string) func(v visitor) {
		return func(v visitor) {
			v.created(t, s, "user", "ada")
			require.EqualValues(t, 1, c.HDel(t.Context(), v.key(), field).Val())
		}
	}
	with := func(field, value string) func(v visitor) {
		return func(v visitor) {
			v.created(t, s, "user", "ada")
			require.NoError(t, c.HSet(t.Context(), v.key(), field, value).Err())
		}
	}
	for name, put := range map[string]func(v visitor){
		"string":           func(v visitor) { c.Set(t.Context(), v.key(), "x", 0) },
		"list":             func(v visitor) { c.RPush(t.Context(), v.key(), "x") },
		"set":              func(v visitor) { c.SAdd(t.Context(), v.key(), "x") },
		"stream":           func(v visitor) { c.XAdd(t.Context(), &redis.XAddArgs{Stream: v.key(), Values: []string{"a", "b"}}) },
		"hash":             func(v visitor) { c.HSet(t.Context(), v.key(), "user", "ada") },
		"no digest":        without("digest"),
		"no creation":      without("created"),
		"no touch":         without("touched"),
		"no size":          without("size"),
		"short digest":     with("digest", "x"),
		"word for a time":  with("created", "nan"),
		"endless time":     with("touched", strings.Repeat("9", 400)),
		"fraction of time": with("touched", "1.5"),
		"negative size":    with("size", "-1"),
		"short old digest": with("old", "x"),
		"old, no grace":    with("old", strings.Repeat("x", 32)),
		"user, no end":     with("user", "ada"),
	} {
		v := newVisitor()
		put(v)
		before := testhost.Content(t, c, v.key())
		for operation, err := range everything(t, s, v, onSessions) {
			require.ErrorIs(t, err, redisstore.ErrKeyType, "%s: %s", name, operation)
		}
		require.Equal(t, before, testhost.Content(t, c, v.key()), name)
	}
}

func TestErrorsDontQuoteKeysOrValues(t *testing.T) {
	v := newVisitor()
	quote := fmt.Sprintf("%s %s s3cret-value", v.key(), hex.EncodeToString(v.digest[:]))
	replies := testhost.QuotingReplies(quote, "s3cret-value")
	maps.Copy(replies, map[string]string{
		"odd hash":        "*5\r\n:1\r\n:1\r\n:0\r\n+\r\n*1\r\n+" + quote + "\r\n",
		"no hash":         "*5\r\n:1\r\n:1\r\n:0\r\n+\r\n+" + quote + "\r\n",
		"numbers in hash": "*5\r\n:1\r\n:1\r\n:0\r\n+\r\n*2\r\n:1\r\n:2\r\n",
		"no time":         "*5\r\n+" + quote + "\r\n:1\r\n:0\r\n+\r\n*0\r\n",
		"no reply of one": "*1\r\n:77\r\n",
		"a word":          "*1\r\n+" + quote + "\r\n",
	})
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, testhost.FixedReplyClient(t, reply), redisstore.Options{})
			for operation, err := range everything(t, s, v, onSessions, onUsers) {
				want := "store unavailable: "
				if errors.Is(err, redisstore.ErrKeyType) {
					want = "redisstore: the key does not hold a session"
				}
				require.ErrorContains(t, err, want, operation)
				for e := err; e != nil; e = errors.Unwrap(e) {
					for _, part := range []string{v.locator.Key(), hex.EncodeToString(v.digest[:]), "s3cret"} {
						require.NotContains(t, e.Error(), part, operation)
					}
				}
			}
		})
	}
}
