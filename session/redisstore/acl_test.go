package redisstore_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redistest"
	"github.com/lazyreq/lazyreq/session/storetest"
)

// TestTheDocumentedUserIsEnough runs the suite as the restricted user of docs/redis.md.
func TestTheDocumentedUserIsEnough(t *testing.T) {
	const line = "ACL SETUSER sessions "
	text, err := os.ReadFile("../../docs/redis.md")
	require.NoError(t, err)
	_, rule, found := strings.Cut(string(text), line)
	require.True(t, found)
	rule, _, _ = strings.Cut(rule, "\n")
	var args []any
	for _, word := range slices.Concat(strings.Fields(line), strings.Fields(rule)) {
		args = append(args, word)
	}
	server := redistest.Start(t)
	admin := server.Client(nil)
	require.NoError(t, admin.Do(t.Context(), args...).Err())
	c := server.Client(func(o *redis.Options) { o.Username, o.Password = "sessions", "secret" })
	require.ErrorContains(t, c.Get(t.Context(), "elsewhere").Err(), "NOPERM")
	require.NoError(t, admin.ScriptFlush(t.Context()).Err())
	storetest.Run(t, agingAs(c, admin))
}
