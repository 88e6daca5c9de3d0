package server

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/internal/testenv"
)

func TestMain(m *testing.M) {
	child.Main(Roles)
	os.Exit(m.Run())
}

// One short round of every stack: all of them give the right answers and ask Redis
// what they should.
func TestEveryStackAnswersRight(t *testing.T) {
	testenv.LookPath(t, "redis-server")
	b, err := openBench(t.Context(), plan{rounds: 1, warmUp: 100 * time.Millisecond, measure: time.Second})
	require.NoError(t, err)
	defer b.close()
	r := &harness.Run{Quick: true}
	require.NoError(t, b.compare(t.Context(), r, setting{50, slow}))

	// gin's store sends a PING first. Ours needs two scripts in every second request, but
	// those of several requests are one command.
	want := map[string]float64{"chi": 2, "gin": 3, "bare": 0}
	seen := 0
	for _, res := range r.Results() {
		require.Empty(t, res.Note, res.Contender)
		if res.Metric == commands {
			seen++
			if res.Contender == ours {
				require.Greater(t, res.Median, 0.01)
				require.Less(t, res.Median, 1.0)
				continue
			}
			require.InDelta(t, want[res.Contender], res.Median, 0.2, res.Contender)
		}
	}
	require.Equal(t, len(want)+1, seen)
}
