package plot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const lines = `{"suite":"s"}
{"case":"one","contender":"ours","metric":"time","median":3,"min":1,"max":5,"unit":"ns/op","ratio":null}
{"case":"one","contender":"theirs","metric":"time","median":12,"min":6,"max":60,"unit":"ns/op","ratio":4}
{"case":"one","contender":"absent","metric":"time","median":0,"min":0,"max":0,"unit":"ns/op","ratio":null,"note":"missing: no node"}
{"case":"one","contender":"ours","metric":"some allocs","median":0,"min":0,"max":0,"unit":"allocs/op","ratio":null}
{"case":"one","contender":"absent","metric":"some allocs","median":0,"min":0,"max":0,"unit":"allocs/op","ratio":null,"note":"missing: no node"}
{"case":"one","contender":"absent","metric":"nothing","median":0,"min":0,"max":0,"unit":"ops","ratio":null,"note":"missing: no node"}
`

func TestAllDrawsWhatWasMeasured(t *testing.T) {
	results, plots := t.TempDir(), filepath.Join(t.TempDir(), "new")
	require.NoError(t, os.WriteFile(filepath.Join(results, "s.jsonl"), []byte(lines), 0o600))
	require.NoError(t, All(results, plots))

	entries, err := os.ReadDir(plots)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	time, err := os.ReadFile(filepath.Join(plots, "s-time.svg"))
	require.NoError(t, err)
	require.Contains(t, string(time), "theirs")
	require.NotContains(t, string(time), "absent")
	require.NotContains(t, string(time), "wrong or failed")
	require.FileExists(t, filepath.Join(plots, "s-some-allocs.svg"))
}

func TestAllDrawsShares(t *testing.T) {
	results, plots := t.TempDir(), t.TempDir()
	const shares = `{"suite":"server"}
{"case":"100%/0ms","contender":"ours","metric":"throughput","median":3000,"min":1,"max":5000,"unit":"req/s","ratio":null}
{"case":"0%/0ms","contender":"ours","metric":"throughput","median":7000,"min":6,"max":7000,"unit":"req/s","ratio":null}
{"case":"50%/0ms","contender":"broken","metric":"throughput","median":9000,"min":6,"max":9000,"unit":"req/s","ratio":null,"note":"failed: EOF"}
{"case":"50%/0.2ms","contender":"slow","metric":"throughput","median":7000,"min":6,"max":7000,"unit":"req/s","ratio":null}
`
	require.NoError(t, os.WriteFile(filepath.Join(results, "server.jsonl"), []byte(shares), 0o600))
	require.NoError(t, All(results, plots))
	picture, err := os.ReadFile(filepath.Join(plots, "server-shares.svg"))
	require.NoError(t, err)
	require.Contains(t, string(picture), "ours")
	require.NotContains(t, string(picture), "slow")
	require.NotContains(t, string(picture), "broken")
	marked, err := os.ReadFile(filepath.Join(plots, "server-throughput.svg"))
	require.NoError(t, err)
	require.Contains(t, string(marked), "×: wrong or failed")
}

func TestAllNeedsResults(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, All(dir, dir), "no results")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.jsonl"), []byte("no JSON\n"), 0o600))
	require.ErrorContains(t, All(dir, dir), "s.jsonl")
}

func TestLogTicks(t *testing.T) {
	values := map[float64]string{}
	for _, tick := range (logTicks{}).Ticks(0.4, 21) {
		values[tick.Value] = tick.Label
	}
	require.Len(t, values, 6+9+2)
	require.Equal(t, "0.5", values[0.5])
	require.Equal(t, "20", values[20])
	require.Equal(t, "", values[3])
}

func TestMarksAreDistinct(t *testing.T) {
	seen := map[[2]any]bool{}
	for i := range 25 {
		colour, shape := mark(i)
		seen[[2]any{colour, shape}] = true
	}
	require.Len(t, seen, 25)
}
