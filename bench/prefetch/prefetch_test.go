package prefetch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/rig"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestRoundsOfAllRoutes(t *testing.T) {
	s := testhost.StartRedis(t)
	client := rig.NewClient(s.Addr, 0)
	defer client.Close()
	for _, r := range routes {
		in, err := open(t.Context(), s.Addr, client, r.path, 50*time.Millisecond)
		require.NoError(t, err)
		values, err := in.Round(t.Context())
		require.NoError(t, err, r.name)
		require.InDelta(t, 1, values["redis commands per request"], 0.1, r.name)
		in.cookie = nil
		_, err = in.Round(t.Context())
		require.ErrorIs(t, err, harness.ErrWrong, "without a session")
		require.NoError(t, in.Close())
	}
}

func TestRoundsOfRequiringRoutes(t *testing.T) {
	s := testhost.StartRedis(t)
	client := rig.NewClient(s.Addr, 0)
	defer client.Close()
	commands := map[string]float64{"/session": 1, "/policy": 1, "/property": 2, "/required": 3}
	for _, r := range requiring {
		in, err := open(t.Context(), s.Addr, client, r.path, 50*time.Millisecond)
		require.NoError(t, err)
		values, err := in.Round(t.Context())
		require.NoError(t, err, r.name)
		// Takes of one moment share a command.
		require.InDelta(t, commands[r.path]-0.4, values["redis commands per request"], 0.6, r.name)
		require.NoError(t, in.Close())
	}
}

func TestRoundsOfAnotherRoute(t *testing.T) {
	s := testhost.StartRedis(t)
	for _, p := range programs {
		in, err := p.open(s.Addr, time.Millisecond)
		require.NoError(t, err)
		values, err := in.Round(t.Context())
		require.NoError(t, err, p.name)
		require.Positive(t, values["time"])
		require.NoError(t, in.Close())
	}
}
