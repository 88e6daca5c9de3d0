package node

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
)

func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil { // where the benchmarks are run
		panic(err)
	}
	os.Exit(m.Run())
}

func TestAScriptThatEnds(t *testing.T) {
	p, err := Start(t.Context(), "redback", "no-such-script.js")
	if errors.Is(err, harness.ErrMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.Error(t, p.Ask(map[string]any{"do": "cpu"}, &struct{}{}))
	require.Error(t, p.Close())
}

func TestAPackageThatIsNowhere(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.Context(), "redback", "redback.js")
	require.ErrorIs(t, err, harness.ErrMissing)
	require.ErrorContains(t, err, "no node on this machine")
}
