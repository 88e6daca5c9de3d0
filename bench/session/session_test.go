package session

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/rig"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

func instanceOf(t *testing.T, s *testhost.Redis, c Contender, l load) *instance {
	client := rig.NewClient(s.Addr, 0)
	in, err := openInstance(c, s.Addr, client, l, 100*time.Millisecond)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(in.Close(), client.Close())) })
	return in
}

func TestRoundsOfAll(t *testing.T) {
	s := testhost.StartRedis(t)
	for _, l := range cases {
		commands := map[string]float64{}
		for _, c := range Contenders {
			values, err := instanceOf(t, s, c, l).Round(t.Context())
			require.NoError(t, err, "%s %s", c.Name, l.name)
			require.Positive(t, values["throughput"], "%s %s", c.Name, l.name)
			commands[c.Name] = values["redis commands per request"]
		}
		if l.name == "10% read" {
			require.Greater(t, commands["scs"], 9*commands["lazyreq"], "%s: %v", l.name, commands)
		}
	}
}

func TestWrongAnswerIsNoticed(t *testing.T) {
	s := testhost.StartRedis(t)
	for _, c := range Contenders {
		in := instanceOf(t, s, c, load{"all", 10, 0})
		require.NoError(t, in.prepare(t.Context()))
		require.NoError(t, in.request(t.Context(), 1), c.Name)
		require.NoError(t, in.redis.FlushAll(t.Context()).Err())
		require.ErrorIs(t, in.request(t.Context(), 1), harness.ErrWrong, c.Name)
	}
	in := &instance{handler: http.NotFoundHandler()}
	_, err := in.ask(t.Context(), "GET", "/", "")
	require.ErrorContains(t, err, fmt.Sprint(http.StatusNotFound))
}
