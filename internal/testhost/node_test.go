package testhost

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestNodeRefusesSeveralSlots(t *testing.T) {
	_, plain, cluster := StartNode(t)
	for _, c := range []redis.UniversalClient{plain, cluster} {
		require.NoError(t, c.Set(t.Context(), "a", 1, time.Minute).Err())
		require.Error(t, c.Eval(t.Context(), "return 1", []string{"a", "b"}).Err())
	}
}

func TestKeepFlushingScripts(t *testing.T) {
	c := StartRedis(t).Client(nil)
	sha, err := c.ScriptLoad(t.Context(), "return 1").Result()
	require.NoError(t, err)
	end := KeepFlushingScripts(t, c)
	require.Eventually(t, func() bool { return !c.ScriptExists(t.Context(), sha).Val()[0] }, 10*time.Second, time.Millisecond)
	end()
	require.NoError(t, c.ScriptLoad(t.Context(), "return 1").Err())
	require.True(t, c.ScriptExists(t.Context(), sha).Val()[0], "it has ended")
}
