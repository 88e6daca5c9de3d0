package record

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
)

func TestRecordIsReadAsItWasWritten(t *testing.T) {
	r := New(harness.Suite{Name: "small", About: "two cases"})
	require.Equal(t, runtime.Version(), r.Machine.Go)
	require.Positive(t, r.Machine.CPUs)
	ratio := 0.5
	r.Results = []harness.Result{
		{Case: "one", Contender: "lazyreq", Metric: "time", Median: 2, Min: 1, Max: 3, Unit: "µs"},
		{Case: "one", Contender: "take", Metric: "time", Median: 1, Min: 1, Max: 1, Unit: "µs", Ratio: &ratio, Least: 0.6},
		{Case: "one", Contender: "gone", Metric: "time", Unit: "µs", Note: "missing: no node"},
	}
	path := Path(filepath.Join(t.TempDir(), "new"), "small", true)
	require.NoError(t, r.Write(path))
	got, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, r, got)
	require.Contains(t, got.Source(), runtime.Version())
}

func TestPathsOfBothForms(t *testing.T) {
	require.Equal(t, filepath.Join("results", "small.jsonl"), Path("results", "small", false))
	require.Equal(t, filepath.Join("results", "quick", "small.jsonl"), Path("results", "small", true))
}

func TestBrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "small.jsonl")
	_, err := Read(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, text := range []string{
		"", "no JSON", `{"suite":"small"}` + "\nno JSON", `{"suite":"small"}` + "\n" + `{"case":1}`, `{"suite":"other"}`, `{"case":"one"}`,
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Read(path)
		require.ErrorContains(t, err, "small.jsonl: ", text)
	}
}
