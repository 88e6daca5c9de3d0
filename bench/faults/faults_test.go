package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/decisions"
	"github.com/lazyreq/lazyreq/internal/testenv"
)

// TestDocumentHasTheTable tries twice, because other programs of the machine can disturb a run.
func TestDocumentHasTheTable(t *testing.T) {
	testenv.LookPath(t, "redis-server")
	text, err := os.ReadFile("../../docs/benchmarks.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## faults\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented strings.Builder
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			documented.WriteString(line)
		}
	}
	var out bytes.Buffer
	for range 2 {
		out.Reset()
		err = Run(t.Context(), &out, t.Output())
		if err == nil && out.String() == documented.String() {
			return
		}
	}
	require.NoError(t, err)
	require.Equal(t, documented.String(), out.String(), "go run . -faults prints the table")
}

func TestProgramThatFailsIsReported(t *testing.T) {
	boom := errors.New("boom")
	closed := 0
	open := func(err error) decisions.Contender {
		return decisions.Contender{Name: "broken", Open: func(string) (decisions.Client, error) {
			if err != nil {
				return decisions.Client{}, err
			}
			return decisions.Client{
				Limiter: func(decisions.Quota) (decisions.Take, error) { return nil, boom },
				Close:   func() error { closed++; return nil },
			}, nil
		}}
	}
	for _, check := range []func(*client, func() *client) (string, int){checkDenied, checkRemaining, checkHotKey, checkInstances} {
		for _, err := range []error{nil, boom} {
			r := &run{progress: io.Discard, ping: func(context.Context) error { return nil }}
			faults := []fault{{"a fault", false, programs([]decisions.Contender{open(err)}, check)}}
			seen := r.checkAll(t.Context(), faults)
			require.Equal(t, "| Fault | lazyreq | Peers |\n|---|---|---|\n| a fault |  | could not be run: broken |\n", table(faults, seen))
			require.ErrorIs(t, r.err, boom)
		}
	}
	require.Equal(t, 3+33, closed)
}

func TestProgramWithoutRedisIsReported(t *testing.T) {
	boom, pings := errors.New("boom"), 0
	r := &run{progress: io.Discard, ping: func(context.Context) error {
		if pings++; pings == 1 {
			return nil
		}
		return boom
	}}
	checks := 0
	check := func(context.Context, string) (string, int, error) { checks++; return "many", 64, nil }
	seen := r.checkAll(t.Context(), []fault{{"a fault", false, []program{{"x", check}, {"y", check}}}})
	require.Equal(t, [][]string{{"could not be run", "could not be run"}}, seen)
	require.Equal(t, 1, checks)
	require.ErrorIs(t, r.err, boom)
}

func TestInterruptedRunHasNoTable(t *testing.T) {
	testenv.LookPath(t, "redis-server")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	require.Equal(t, context.Canceled, Run(ctx, &out, io.Discard))
	require.Empty(t, out.String())
}

func TestTableGroupsPrograms(t *testing.T) {
	faults := []fault{
		{name: "one", programs: []program{{name: "lazyreq A"}, {name: "lazyreq B"}, {name: "x"}, {name: "y"}, {name: "z"}}},
		{name: "two", programs: []program{{name: "lazyreq A"}, {name: "lazyreq B"}, {name: "x"}}},
	}
	require.Equal(t, `| Fault | lazyreq | Peers |
|---|---|---|
| one | no | yes: x, z; no: y |
| two | 1: A; 2: B | 1: x |
`, table(faults, [][]string{{"no", "no", "yes", "no", "yes"}, {"1", "2", "1"}}))
}
