package record

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOthers writes the files of /proc for a process 7, its child 9, whose own child has ended, and another program, 8.
func TestOthers(t *testing.T) {
	proc := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(proc, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600))
	}
	process := func(id, parent, user, system, ended int) {
		write(fmt.Sprintf("%d/stat", id), fmt.Sprintf("%d (a name) 1) S %d 1 1 0 -1 0 0 0 0 0 %d %d %d 0 20 0", id, parent, user, system, ended))
	}
	write("stat", "cpu  1000 0 1000 5000 0 0 0 0 0 0\ncpu0 1 2 3")
	process(7, 1, 100, 100, 0)
	process(8, 1, 500, 500, 0)
	others := watch(proc, 7)
	require.Zero(t, others())

	write("stat", "cpu  1400 0 1300 5100 0 50 50 100 0 0\ncpu0 1 2 3") // 1000 ticks later; 100 are another machine's
	process(7, 1, 200, 150, 0)
	process(8, 1, 600, 500, 0)
	process(9, 7, 100, 50, 300)
	require.InDelta(t, 0.2, others(), 1e-9)

	write("stat", "cpu  1450 0 1300 5100 0 50 50 100 0 0\ncpu0 1 2 3") // 50 ticks, all of others: too few
	require.InDelta(t, 0.2, others(), 1e-9)
	write("stat", "cpu  1500 0 1300 6050 0 50 50 100 0 0\ncpu0 1 2 3") // 10 % of the next interval
	require.InDelta(t, 0.2, others(), 1e-9, "the largest share remains")
	write("stat", "cpu  1800 0 1300 6750 0 50 50 100 0 0\ncpu0 1 2 3") // 30 %
	require.InDelta(t, 0.3, others(), 1e-9)

	require.Zero(t, watch(filepath.Join(proc, "none"), 7)())
}

func TestSourceOfADisturbedRun(t *testing.T) {
	require.NotContains(t, Record{Others: disturbing}.Source(), "Disturbed")
	require.Contains(t, Record{Others: 0.123}.Source(), " Disturbed: other programs used up to 12 % of the processors.")
}
