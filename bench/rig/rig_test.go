package rig

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
)

func TestRedisEndsWithItsRun(t *testing.T) {
	testenv.LookPath(t, "redis-server")
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	boom := errors.New("boom")
	var was string
	var gone *redis.Client
	require.ErrorIs(t, WithRedis(func(addr string, client *redis.Client) error {
		was, gone = addr, client
		require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())
		other := NewClient(addr, 3)
		defer other.Close()
		require.Equal(t, 3, other.Options().PoolSize)
		require.Equal(t, "v", other.Get(t.Context(), "k").Val())
		return boom
	}), boom)
	require.ErrorIs(t, gone.Ping(t.Context()).Err(), redis.ErrClosed)
	late := NewClient(was, 0)
	defer late.Close()
	require.Error(t, late.Ping(t.Context()).Err())
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestWithoutARedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	require.ErrorIs(t, WithRedis(nil), exec.ErrNotFound)
}

func TestProcessorTimeGrowsWithWork(t *testing.T) {
	began := ProcessorTime()
	require.Eventually(t, func() bool {
		for end := time.Now().Add(time.Millisecond); time.Now().Before(end); {
		}
		return ProcessorTime()-began > 5*time.Millisecond
	}, 10*time.Second, time.Millisecond)
}
