package counter

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil { // where the benchmarks are run
		panic(err)
	}
	os.Exit(m.Run())
}

func TestRoundsOfBoth(t *testing.T) {
	server := testhost.StartRedis(t)
	client := server.Client(nil)
	o, err := newOurs(client, counting)
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
			require.Positive(t, values["throughput"], "%s %s", name, l.name)
		}
		require.NoError(t, c.Close(), name)
	}
}

func TestRoundOfTakes(t *testing.T) {
	server := testhost.StartRedis(t)
	client := server.Client(nil)
	in, err := newTakes(client, 50*time.Millisecond, unreached)
	require.NoError(t, err)
	values, err := in.Round(t.Context())
	require.NoError(t, err)
	require.Len(t, values, 1, "adds and counts are compared by throughput alone")
	require.Positive(t, values["throughput"])

	in, err = newTakes(client, 50*time.Millisecond, 1)
	require.NoError(t, err)
	require.NoError(t, in.prepare(t.Context(), "r1", false))
	require.NoError(t, in.take(t.Context(), 0))
	require.ErrorIs(t, in.take(t.Context(), 0), harness.ErrWrong)
}

// TestWrongCountIsNoticed changes Redis behind the counters' backs.
func TestWrongCountIsNoticed(t *testing.T) {
	server := testhost.StartRedis(t)
	client := server.Client(nil)
	o, err := newOurs(client, counting)
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
