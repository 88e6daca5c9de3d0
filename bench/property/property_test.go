package property

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
)

func TestEveryLoopReadsTheRightValue(t *testing.T) {
	for _, w := range ways {
		for name, l := range map[string]loop{"hit": w.hit(), "first": w.first(defined), "setup-1": w.setup(1), "setup-16": w.setup(defined)} {
			require.NoError(t, l(10), "%s %s", w.name, name)
		}
	}
}

func TestRoundMeasures(t *testing.T) {
	for _, w := range ways {
		timed, err := harness.NewTimed(w.setup(4), harness.QuickRound/50)
		require.NoError(t, err)
		values, err := timed.Round(t.Context())
		require.NoError(t, err, w.name)
		require.Greater(t, values["time"], 1.0, w.name)
		require.GreaterOrEqual(t, values["allocs"], 1.0, w.name)
		require.GreaterOrEqual(t, values["bytes"], 48.0, w.name)
	}
}
