package counter

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/internal/redisproc"
)

func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil { // where the benchmarks are run
		panic(err)
	}
	os.Exit(m.Run())
}

func start(t *testing.T) (*redisproc.Server, *redis.Client) {
	s, err := redisproc.Start(t.TempDir())
	if errors.Is(err, exec.ErrNotFound) {
		if os.Getenv("CI") == "true" {
			t.Fatal("no redis-server, and CI needs it")
		}
		t.Skip("no redis-server")
	}
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return s, c
}

func TestRoundsOfBoth(t *testing.T) {
	server, client := start(t)
	o, err := newOurs(client)
	require.NoError(t, err)
	contenders := map[string]counter{"ours": o}
	switch b, err := newRedback(t.Context(), server.Addr); {
	case errors.Is(err, harness.ErrMissing):
		t.Logf("without redback: %v", err)
	default:
		require.NoError(t, err)
		contenders["redback"] = b
	}
	for name, c := range contenders {
		for _, l := range cases {
			in := &instance{counter: c, load: l, length: 50 * time.Millisecond, redis: client}
			values, err := in.Round(t.Context())
			require.NoError(t, err, "%s %s", name, l.name)
			require.Greater(t, values["throughput"], 100.0, "%s %s", name, l.name)
		}
		require.NoError(t, c.Close(), name)
	}
}

// TestAWrongCountIsNoticed changes Redis behind the counters' backs.
func TestAWrongCountIsNoticed(t *testing.T) {
	server, client := start(t)
	o, err := newOurs(client)
	require.NoError(t, err)
	contenders := map[string]counter{"ours": o}
	if b, err := newRedback(t.Context(), server.Addr); err == nil {
		contenders["redback"] = b
	}
	for name, c := range contenders {
		require.NoError(t, c.prepare(t.Context(), "r1", true), name)
		require.NoError(t, c.verify(t.Context()), name)
		require.NoError(t, client.FlushAll(t.Context()).Err())
		require.ErrorIs(t, c.verify(t.Context()), harness.ErrWrong, name)
		_, err := c.run(t.Context(), cases[1], 20*time.Millisecond)
		require.ErrorIs(t, err, harness.ErrWrong, name)
		require.NoError(t, c.Close(), name)
	}
}
