package decisions

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// contenders returns every contender once.
func contenders() []Contender {
	seen := map[string]bool{}
	var all []Contender
	for _, g := range groups {
		for _, c := range g.contenders {
			if !seen[c.Name] {
				all, seen[c.Name] = append(all, c), true
			}
		}
	}
	return all
}

func TestRoundsOfAll(t *testing.T) {
	server := testhost.StartRedis(t)
	client := server.Client(nil)
	for _, c := range contenders() {
		in, err := openInstance(c, server.Addr, client, load{size: 512, callers: 8}, 50*time.Millisecond)
		require.NoError(t, err, c.Name)
		values, err := in.Round(t.Context())
		if c.Name == "throttled" { // some of its calls fail where several are at one key
			require.True(t, err == nil || errors.Is(err, harness.ErrWrong), err)
		} else {
			require.NoError(t, err, c.Name)
		}
		require.Positive(t, values["throughput"], c.Name)
		require.Greater(t, values["redis commands per decision"], 0.0, c.Name)
		require.NoError(t, in.Close(), c.Name)
	}
}

func TestCommandsAreThoseThatAreSent(t *testing.T) {
	server := testhost.StartRedis(t)
	client := server.Client(nil)
	want := map[string]float64{"redis_rate": 1, "rueidislimiter": 1, "ulule": 1, "go-redisstore": 1, "throttled": 3, "httprate-redis": 5, "INCR": 1}
	for _, c := range contenders() {
		if want[c.Name] == 0 {
			continue
		}
		in, err := openInstance(c, server.Addr, client, load{size: 4, callers: 1}, 30*time.Millisecond)
		require.NoError(t, err, c.Name)
		values, err := in.Round(t.Context())
		require.NoError(t, err, c.Name)
		require.InDelta(t, want[c.Name], values["redis commands per decision"], 0.1, c.Name)
		require.NoError(t, in.Close(), c.Name)
	}
}

// fake returns a contender that does not use Redis.
func fake(wide, narrow func() (bool, error)) Contender {
	return Contender{Name: "fake", sends: scripts, Open: func(string) (Client, error) {
		return Client{Close: func() error { return nil }, Limiter: func(q Quota) (Take, error) {
			take := wide
			if q.Per > time.Hour {
				take = narrow
			}
			return func(context.Context, string, int) (Decision, error) {
				ok, err := take()
				return Decision{Allowed: ok}, err
			}, nil
		}}, nil
	}}
}

func TestWhatIsWrongIsNoticed(t *testing.T) {
	server := testhost.StartRedis(t)
	client := server.Client(nil)
	yes := func() (bool, error) { return true, nil }
	no := func() (bool, error) { return false, nil }
	fails := func() (bool, error) { return false, errors.New("boom") }
	for want, c := range map[string]Contender{
		"admitted 200, allowed were 100": fake(yes, yes),
		"admitted 0, allowed were 100":   fake(yes, no),
		"at the limit: boom":             fake(yes, fails),
		"denied, far below the limit":    fake(no, no),
		"no decision":                    fake(fails, no),
	} {
		in, err := openInstance(c, server.Addr, client, load{size: 1, callers: 1}, 10*time.Millisecond)
		require.NoError(t, err)
		_, err = in.Round(t.Context())
		require.ErrorIs(t, err, harness.ErrWrong)
		require.ErrorContains(t, err, want)
	}
}

func TestLatencies(t *testing.T) {
	values := map[string]float64{}
	done := &tally{}
	for i := range 100 {
		done.took = append(done.took, time.Duration(100-i)*time.Microsecond)
	}
	done.addLatenciesTo(values)
	require.Equal(t, map[string]float64{"mean latency": 50.5, "p50 latency": 51, "p99 latency": 100}, values)
}
