package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/storetest"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestDocumentedUserSuffices runs the suite as the restricted user of docs/redis.md. Then it removes the user's
// commands one at a time, except those that the test's client does not need, and checks that an operation fails.
func TestDocumentedUserSuffices(t *testing.T) {
	words := testhost.ParseUser(t, "../../docs/redis.md", "coord")
	server := testhost.StartRedis(t)
	admin := server.Client(nil)
	set := func(words []string) {
		t.Helper()
		server.SetUser("coord", words)
		require.NoError(t, admin.ScriptFlush(t.Context()).Err())
	}
	set(words)
	c := server.ClientAs("coord")
	require.ErrorContains(t, c.Get(t.Context(), "elsewhere").Err(), "NOPERM")
	storetest.Run(t, aging(c, admin))

	require.NoError(t, allowed(t, c, admin))
	for i, word := range words {
		if !strings.HasPrefix(word, "+") || slices.Contains([]string{"+hello", "+ping", "+eval"}, word) {
			continue // the test's client does not need it
		}
		set(slices.Delete(slices.Clone(words), i, i+1))
		require.Error(t, allowed(t, server.ClientAs("coord"), admin), "nothing needs %s", word)
	}
}

// allowed runs all operations. It returns the first failure.
func allowed(t *testing.T, c, admin *redis.Client) error {
	t.Helper()
	require.NoError(t, admin.FlushAll(t.Context()).Err())
	s := newStore(t, c, patient)
	for _, err := range everything(t.Context(), s) {
		if errors.Is(err, coord.ErrStore) {
			return err
		}
	}
	require.NoError(t, admin.FlushAll(t.Context()).Err())
	if err := s.Issue(t.Context(), key(1), nil, time.Minute, 0); err != nil {
		return err
	}
	require.NoError(t, admin.HSet(t.Context(), only(t, admin), "forgotten", 1).Err())
	if _, err := s.Inspect(t.Context(), key(1)); !errors.Is(err, coord.ErrUnknown) {
		return err
	}
	return nil
}
