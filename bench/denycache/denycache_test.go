package denycache

import (
	"context"
	"errors"
	"os"
	"strings"
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

// TestRoundsOfAll has as many contenders and cases as the machine has what they need.
func TestRoundsOfAll(t *testing.T) {
	server := testhost.StartRedis(t)
	client := server.Client(nil)
	for _, c := range contenders {
		made, err := c.make(t.Context(), server.Addr, client)
		if errors.Is(err, harness.ErrMissing) {
			t.Logf("without %s: %v", c.name, err)
			continue
		}
		require.NoError(t, err, c.name)
		for i, l := range cases {
			if err := l.need(); err != nil {
				t.Logf("%s without %s: %v", c.name, l.name, err)
				continue
			}
			in := &instance{subject: made, load: l.load, length: 300 * time.Millisecond, redis: client}
			in.rounds = i * 100 // keys that the other cases don't have
			values, err := in.Round(t.Context())
			require.NoError(t, err, "%s %s", c.name, l.name)
			require.Positive(t, values["throughput"], "%s %s", c.name, l.name)
			require.Greater(t, values["store calls per decision"], 0.0, "%s %s", c.name, l.name)
			require.GreaterOrEqual(t, values["p99 latency"], values["p50 latency"], "%s %s", c.name, l.name)
		}
		require.NoError(t, made.Close(), c.name)
	}
}

func TestWhatIsAdmittedIsChecked(t *testing.T) {
	for _, s := range []sample{{admitted: []int{15, 15, 15, 15, 15}}, {admitted: []int{75}}} {
		require.NoError(t, s.checkAdmitted(2500*time.Millisecond))
		s.admitted[0]++
		require.ErrorIs(t, s.checkAdmitted(2500*time.Millisecond), harness.ErrWrong)
		s.admitted[0] -= 2
		require.ErrorIs(t, s.checkAdmitted(2500*time.Millisecond), harness.ErrWrong)
	}
	long := sample{seconds: 3.1, admitted: []int{20, 15, 15, 15, 15}}
	require.NoError(t, long.checkAdmitted(2500*time.Millisecond))
	long.admitted[0]++
	require.ErrorIs(t, long.checkAdmitted(2500*time.Millisecond), harness.ErrWrong)
}

const table = `response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset
0.0025,0.0006,0.0000,0.0002,0.0014,0.0000,200,0.0010
0.0005,0.0006,0.0000,0.0002,0.0014,0.0000,429,0.5000
`

func TestRead(t *testing.T) {
	s, err := parseHeyOutput(strings.NewReader(table))
	require.NoError(t, err)
	require.Equal(t, 2, s.ops)
	require.Equal(t, []int{1}, s.admitted)
	require.Equal(t, []float64{2500, 500}, s.latencies)
	require.InDelta(t, 0.5005, s.seconds, 1e-9)

	for _, wrong := range []string{strings.Replace(table, "429", "500", 1), "response-time\n"} {
		_, err := parseHeyOutput(strings.NewReader(wrong))
		require.ErrorIs(t, err, harness.ErrWrong)
	}
	_, err = parseHeyOutput(strings.NewReader(strings.Replace(table, "0.0025", "soon", 1)))
	require.ErrorContains(t, err, "hey: ")
}

func TestWithoutHey(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	require.ErrorIs(t, requireHey(), harness.ErrMissing)
}

// broken is a subject that fails.
type broken struct{ subject }

func (broken) startServer(context.Context) (string, error) { return "", errors.New("boom") }

func TestSubjectThatFails(t *testing.T) {
	_, err := httpLoad(0)(t.Context(), broken{}, "r1", time.Millisecond)
	require.ErrorContains(t, err, "boom")
}
