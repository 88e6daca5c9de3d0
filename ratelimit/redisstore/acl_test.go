package redisstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

const document = "../../docs/redis.md"

// TestDocumentedUserSuffices runs every kind of op with every rule as the restricted user of docs/redis.md. Then it
// removes the user's commands one at a time, and checks that an op fails.
func TestDocumentedUserSuffices(t *testing.T) {
	server := testhost.StartRedis(t)
	root := server.Client(nil)
	full := testhost.ParseUser(t, document, "limits")
	ops := func() (err error) {
		require.NoError(t, root.FlushAll(t.Context()).Err())
		require.NoError(t, root.ScriptFlush(t.Context()).Err())
		return everything(t, server.ClientAs("limits"))
	}
	server.SetUser("limits", full)
	require.NoError(t, ops())
	c := server.ClientAs("limits")
	require.ErrorContains(t, c.Set(t.Context(), "elsewhere", 1, 0).Err(), "NOPERM")
	require.ErrorContains(t, c.FlushAll(t.Context()).Err(), "NOPERM")

	for i, word := range full {
		command, ok := strings.CutPrefix(word, "+")
		if !ok {
			continue
		}
		switch command {
		case "eval", "ping", "hello": // the test's client does not need these
			continue
		}
		server.SetUser("limits", slices.Delete(slices.Clone(full), i, i+1))
		require.Error(t, ops(), "without %s", command)
	}
}

// everything runs every kind of op with every rule. Some takes are denied.
func everything(t *testing.T, c *redis.Client) error {
	own := newStore(t, c, patient)
	clock := freeze(own)
	for _, store := range []*Store{newStore(t, c, patient), own} {
		for _, block := range []ratelimit.Block{{}, {After: 1, For: time.Minute}} {
			for _, r := range lasting(block) {
				for range 3 {
					var charged ratelimit.Receipt
					for i := range 3 {
						res, err := store.DoOne(t.Context(), takeOf(r, "k", 1))
						if err != nil {
							return err
						}
						if i < 2 {
							charged = res.Receipt
						}
						clock.Advance(time.Second)
					}
					for range 2 { // at the same time if the store has the test's clock
						if _, err := store.DoOne(t.Context(), opOf(ratelimit.Add, r, "k", 1)); err != nil {
							return err
						}
					}
					for _, op := range allKinds(r, charged) {
						if _, err := store.DoOne(t.Context(), op); err != nil {
							return err
						}
					}
					clock.Advance(10 * time.Second)
				}
			}
		}
	}
	return nil
}
