package redispipe

import (
	"runtime"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestOnePipeForAClient(t *testing.T) {
	a, b := client(t, "127.0.0.1:1", nil), client(t, "127.0.0.1:1", nil)
	p, err := For(a)
	require.NoError(t, err)
	again, err := For(a)
	require.NoError(t, err)
	require.Same(t, p, again)
	other, err := For(b)
	require.NoError(t, err)
	require.NotSame(t, p, other)
	runtime.KeepAlive(p)
}

func TestUnusedPipesAreForgotten(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	for _, c := range []redis.UniversalClient{client(t, "127.0.0.1:1", nil), cluster} {
		_, err := For(c)
		require.NoError(t, err)
		eventually(t, "the pipe is gone", func() bool {
			runtime.GC()
			pipesMu.Lock()
			defer pipesMu.Unlock()
			_, found := pipes[c]
			return !found
		})
		p, err := For(c)
		require.NoError(t, err)
		forget(c) // as if the clean-up of the first pipe ran late
		again, err := For(c)
		require.NoError(t, err)
		require.Same(t, p, again)
	}
}

// unhashable is a client that cannot be the key of a map.
type unhashable struct {
	redis.UniversalClient
	_ []int
}

func TestUnsupportedClients(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}, HeartbeatFrequency: long})
	defer ring.Close()
	for _, test := range []struct {
		client redis.UniversalClient
		want   string
	}{
		{nil, "no client"},
		{(*redis.Client)(nil), "no client"},
		{(*redis.ClusterClient)(nil), "no client"},
		{ring, "*redis.Ring"},
		{unhashable{}, "redispipe.unhashable"},
	} {
		for _, f := range []func(redis.UniversalClient) (*Pipe, error){open, For} {
			p, err := f(test.client)
			require.ErrorContains(t, err, test.want)
			require.Nil(t, p)
		}
	}
}
