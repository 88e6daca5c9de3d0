package redisstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session/storetest"
)

// TestDocumentedUserSuffices runs the suite as the restricted user that docs/redis.md recommends.
func TestDocumentedUserSuffices(t *testing.T) {
	server := testhost.StartRedis(t)
	admin := server.Client(nil)
	server.SetUser("sessions", testhost.ParseUser(t, "../../docs/redis.md", "sessions"))
	c := server.ClientAs("sessions")
	require.ErrorContains(t, c.Get(t.Context(), "elsewhere").Err(), "NOPERM")
	require.NoError(t, admin.ScriptFlush(t.Context()).Err())
	storetest.Run(t, agingAs(c, admin))
}
