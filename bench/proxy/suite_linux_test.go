package proxy

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/rig"
	"github.com/lazyreq/lazyreq/internal/testenv"
)

func TestMain(m *testing.M) {
	child.Main(Roles)
	os.Exit(m.Run())
}

// short returns a bench for one short round of each contender. If nginx or Redis is missing, the
// test is skipped, or fails with CI=true.
func short(t *testing.T) *bench {
	t.Helper()
	testenv.LookPath(t, "nginx", "/usr/sbin/nginx")
	testenv.LookPath(t, "redis-server")
	b, err := openBench(t.Context(), plan{1, 50 * time.Millisecond, time.Second})
	t.Cleanup(b.close)
	require.NoError(t, err)
	return b
}

// without returns the contenders but one.
func without(name string) []contender {
	return slices.DeleteFunc(slices.Clone(contenders), func(c contender) bool { return c.name == name })
}

// In a short round, all contenders limit and count correctly.
func TestEveryProxy(t *testing.T) {
	b := short(t)
	r := &harness.Run{Quick: true}
	require.NoError(t, b.compare(t.Context(), r, b.allCases(without(caddy))))
	values := map[string]map[string]float64{}
	for _, res := range r.Results() {
		if strings.Contains(res.Case, "caddy") {
			require.Contains(t, res.Note, "missing")
			continue
		}
		require.Empty(t, res.Note, res.Case+" "+res.Contender)
		name := res.Case + " " + res.Contender
		if values[name] == nil {
			values[name] = map[string]float64{}
		}
		values[name][res.Metric] = res.Median
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(values)), []string{
		"none lazyreq", "none bare", "none nginx", "limit lazyreq", "limit nginx", "denied lazyreq", "denied nginx", "redis lazyreq",
		"none/bare lazyreq", "limit/bare lazyreq", "redis/bare lazyreq", "denied/limit lazyreq", "limit/nginx lazyreq", "denied/nginx lazyreq",
	})
	for name, v := range values {
		if strings.Contains(name, "/") {
			require.Positive(t, v[processor+" ratio"], name)
			continue
		}
		require.Positive(t, v[processor], name)
		require.Positive(t, v[p50], name)
		require.GreaterOrEqual(t, v[p99], v[p50], name)
		require.Less(t, v[busy], 130.0, "%s has one processor", name)
		require.Positive(t, v[throughput], name)
	}
}

// Caddy is measured as well; to build it takes minutes and downloads a lot.
func TestCaddy(t *testing.T) {
	if os.Getenv("LAZYREQ_BENCH_CADDY") != "true" {
		t.Skip("LAZYREQ_BENCH_CADDY=true builds Caddy and tries it")
	}
	b := short(t)
	b.buildCaddy(t.Context())
	require.NoError(t, b.caddy.err)
	for name, s := range inMemory {
		c := contender{name: caddy, start: startCaddy}
		i, err := b.startContender(t.Context(), c, s)
		require.NoError(t, err, name)
		values, err := i.Round(t.Context())
		require.NoError(t, err, name)
		require.Positive(t, values[processor], name)
		require.NoError(t, i.Close())
	}
}

func TestMissingContenders(t *testing.T) {
	b := &bench{plan: plan{rounds: 1}, caddy: program{err: harness.ErrMissing}}
	_, err := b.startContender(t.Context(), contenders[3], inMemory[ample])
	require.ErrorIs(t, err, harness.ErrMissing)
	b = &bench{missing: harness.ErrMissing}
	_, err = b.startContender(t.Context(), contenders[0], inMemory[none])
	require.ErrorIs(t, err, harness.ErrMissing)
	b = &bench{dir: t.TempDir()}
	p := b.build(t.Context(), "nothing", "bench/proxy", "./nothing")
	require.ErrorIs(t, p.err, harness.ErrMissing)
	require.ErrorContains(t, p.err, "go build nothing")
}

func TestWrongCountsEndRun(t *testing.T) {
	b := short(t)
	_, err := b.startContender(t.Context(), contender{name: bare, start: startBare}, setup{limit: few})
	require.EqualError(t, err, "request 6 with a limit of 5: wrong: 200 OK with 1024 bytes, want 429")

	p, err := startBare(t.Context(), b, setup{})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.close()) }()
	round := func(i *instance) error {
		_, err := i.Round(t.Context())
		return err
	}
	require.NoError(t, round(&instance{b, p, unlimited}))
	lost := *p
	lost.count = func(context.Context) (int, error) { return 0, nil }
	require.ErrorContains(t, round(&instance{b, &lost, unlimited}), "the proxy has counted 0 requests, want")

	other, addr, err := child.StartRole(upstreamRole, nil, b.rest)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	own := running{addr: addr, pids: []int{other.Pid()}}
	require.ErrorContains(t, round(&instance{b, &own, unlimited}), "the upstream has answered 0 requests, want")

	// This must be the last: requests in flight at its end are not counted.
	require.ErrorContains(t, round(&instance{b, p, few}), "wrong answer: HTTP/1.1 200 OK, want 429")
}

func TestUpstreamCountsWholeRequests(t *testing.T) {
	all, err := child.AllCPUs()
	require.NoError(t, err)
	p, addr, err := child.StartRole(upstreamRole, nil, all)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	in := bufio.NewReader(conn)
	for i, sent := range []string{"GET / HTTP/1.1\r\n", "\r\nGET /", " HTTP/1.1\r\nA: b\r\n\r\n"} {
		_, err = io.WriteString(conn, sent)
		require.NoError(t, err)
		if i == 0 {
			continue
		}
		res, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, page, body)
		count, err := p.Poll()
		require.NoError(t, err)
		require.Equal(t, map[int]string{1: "1", 2: "2"}[i], count)
	}
}

func TestProcessorTime(t *testing.T) {
	before, err := totalProcessorTime([]int{os.Getpid()})
	require.NoError(t, err)
	for begun := rig.ProcessorTime(); rig.ProcessorTime() < begun+50*time.Millisecond; {
	}
	least := rig.ProcessorTime()
	twice, err := totalProcessorTime([]int{os.Getpid(), os.Getpid()})
	require.NoError(t, err)
	require.GreaterOrEqual(t, twice/2, before+40*time.Millisecond)
	require.InDelta(t, least, twice/2, float64(200*time.Millisecond)) // by whole ticks, on a busy machine
	_, err = totalProcessorTime([]int{1 << 24})
	require.Error(t, err)
}
