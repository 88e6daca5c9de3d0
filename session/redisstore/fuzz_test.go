package redisstore_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session/redisstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

// FuzzStoredRecord stores arbitrary values in the hash of a session. Load must return the session only if the hash has
// the caller's digest, and otherwise one of the documented errors.
func FuzzStoredRecord(f *testing.F) {
	server := testhost.StartMiniredis(f)
	s := newStore(f, server.Client(), patient)
	v := newVisitor()
	digest, now := string(v.digest[:]), "1000000000000000"
	f.Add(digest, now, now, "40", "", "", "", "", ":name", "value")
	f.Add("", now, now, "40", digest, "9000000000000000", "", "", ":name", "value")
	f.Add(digest, now, now, "40", "", "", "ada", "9000000000000000", ":", "\x00")
	f.Add(digest, "1.5", "-1", "9007199254740993", digest, "x", "ada", "", "name", "1")
	f.Fuzz(func(t *testing.T, digest, created, touched, size, old, grace, user, over, name, value string) {
		server.Del(v.key())
		for field, text := range map[string]string{"digest": digest, "created": created, "touched": touched, "size": size,
			"old": old, "grace": grace, "user": user, "over": over, name: value} {
			if field != "" && text != "" {
				server.HSet(v.key(), field, text)
			}
		}
		rec, err := s.Load(t.Context(), v.locator, v.digest, limits)
		if err != nil {
			require.True(t, errors.Is(err, storage.ErrNotFound) || errors.Is(err, redisstore.ErrKeyType), err)
			require.Zero(t, rec)
		} else {
			own := string(v.digest[:])
			require.True(t, server.HGet(v.key(), "digest") == own || server.HGet(v.key(), "old") == own && rec.Old)
		}
		err = s.Commit(t.Context(), v.delta("name", "other"))
		if err == nil {
			again := must(s.Load(t.Context(), v.locator, v.digest, limits))
			require.Equal(t, "other", string(again.Fields["name"]))
		}
		if err := s.Destroy(t.Context(), v.locator, v.digest); err == nil {
			_, err := s.Load(t.Context(), v.locator, v.digest, limits)
			require.Error(t, err)
		}
	})
}
