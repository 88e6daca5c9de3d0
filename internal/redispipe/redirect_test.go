package redispipe

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A call that its caller has abandoned is not sent to another node.
func TestAbandonedCallIsNotRedirected(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	p := newPipe(t, cluster)
	c := newCall(t.Context(), time.Now().Add(long), add("k", 1))
	c.state.Store(sent)
	cmd := commands([]*call{c}, true)[0]
	cmd.SetErr(redacted("ASK 1 127.0.0.1:2"))
	c.abandon(nil)
	require.True(t, newQueue(p, client(t, "127.0.0.1:1", nil)).isRedirected(cmd))
	require.Equal(t, finished, c.state.Load())
	require.Empty(t, p.cluster.queues)
}
