package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/record"
)

// steady is a contender with the same time in each round.
type steady float64

func (s steady) Round(context.Context) (map[string]float64, error) {
	return map[string]float64{"time": float64(s)}, nil
}
func (s steady) Close() error { return nil }

func contender(name string, time float64) harness.Contender {
	return harness.Contender{Name: name, Ours: name == "lazyreq", Start: func(context.Context) (harness.Instance, error) {
		return steady(time), nil
	}}
}

// absent returns a contender that is missing, wrong or failed.
func absent(name string, err error) harness.Contender {
	return harness.Contender{Name: name, Start: func(context.Context) (harness.Instance, error) { return nil, err }}
}

var metrics = []harness.Metric{{Name: "time", Unit: "ns/op"}}

// small is a suite of two cases. Its short form, in which ours takes twice as long, ends with
// err.
func small(err error) harness.Suite {
	return harness.Suite{Name: "small", About: "two cases", Run: func(ctx context.Context, r *harness.Run) error {
		ours := contender("lazyreq", 2)
		if r.Quick {
			ours = contender("lazyreq", 4)
		}
		gone := absent("gone", fmt.Errorf("%w: no node", harness.ErrMissing))
		for _, name := range []string{"one", "another"} {
			if err := r.Compare(ctx, name, 3, metrics, []harness.Contender{ours, contender("theirs", 1234), gone}); err != nil {
				return err
			}
		}
		if r.Quick {
			return err
		}
		return nil
	}}
}

func TestRunWritesBothForms(t *testing.T) {
	var progress bytes.Buffer
	b := bench{results: filepath.Join(t.TempDir(), "results"), out: io.Discard, progress: &progress}
	require.NoError(t, b.runBothForms(t.Context(), small(nil)))
	for quick, ratio := range map[bool]float64{false: 617, true: 308.5} {
		got, err := record.Read(record.Path(b.results, "small", quick))
		require.NoError(t, err)
		require.Equal(t, "small", got.Suite)
		require.Len(t, got.Results, 6)
		require.Equal(t, harness.Result{
			Case: "one", Contender: "theirs", Metric: "time", Median: 1234, Min: 1234, Max: 1234, Unit: "ns/op", Ratio: &ratio, Best: &ratio,
		}, got.Results[1])
	}
	require.Equal(t, "small, full form: one\nsmall, full form: another\nsmall, short form: one\nsmall, short form: another\n", progress.String())
}

func TestFailedRunWritesNothing(t *testing.T) {
	b := bench{results: t.TempDir(), out: io.Discard, progress: io.Discard}
	boom := errors.New("boom")
	require.ErrorIs(t, b.runBothForms(t.Context(), small(boom)), boom)
	entries, err := os.ReadDir(b.results)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestRunNeedsAFolder(t *testing.T) {
	b := bench{results: filepath.Join(t.TempDir(), "file", "results"), out: io.Discard, progress: io.Discard}
	require.NoError(t, os.WriteFile(filepath.Dir(b.results), nil, 0o600))
	s := harness.Suite{Name: "small", Run: func(context.Context, *harness.Run) error {
		t.Error("the suite has run")
		return nil
	}}
	require.ErrorIs(t, b.runBothForms(t.Context(), s), syscall.ENOTDIR)
}

func TestTable(t *testing.T) {
	wide := record.Record{Results: []harness.Result{{Median: 123456, Min: 123456, Max: 123456}}}
	require.NoError(t, writeTable(io.Discard, wide)) // does not widen the next table
	r := &harness.Run{}
	s := small(nil)
	require.NoError(t, s.Run(t.Context(), r))
	rec := record.Record{
		Suite: s.Name, About: s.About, Commit: "b0ae5439718f", Date: time.Date(2026, 11, 21, 13, 11, 50, 0, time.UTC),
		Machine: record.Machine{Go: "go1.26.8", CPUs: 2, Processor: "AMD EPYC"}, Results: r.Results(),
	}
	var b bytes.Buffer
	require.NoError(t, writeTable(&b, rec))
	require.Equal(t, `small: two cases
Commit b0ae5439718f of 2026-11-21, go1.26.8, 2 CPUs (AMD EPYC).
case     metric  contender  median   min   max  unit    ratio    best  note

one      time    lazyreq         2     2     2  ns/op
one      time    theirs       1234  1234  1234  ns/op  617.00  617.00
one      time    gone            –     –     –  ns/op                  missing: no node

another  time    lazyreq         2     2     2  ns/op
another  time    theirs       1234  1234  1234  ns/op  617.00  617.00
another  time    gone            –     –     –  ns/op                  missing: no node

`, b.String())
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3: "3", 0.1234: "0.123", 2.2512: "2.251", 18.024: "18.02", 647.42: "647.4", 1234.5: "1234", 98765.4: "98765",
	} {
		require.Equal(t, want, number(v))
	}
}

func TestUnknownSuite(t *testing.T) {
	for _, o := range []options{{suite: "nope"}, {suite: "nope", quick: true}, {suite: "nope", stale: true}} {
		require.ErrorContains(t, o.run(t.Context(), bench{}),
			"-suite nope: unknown suite, want one of property, counter, server, session, prefetch, memory, redis, denycache, params, proxy")
	}
}

func TestAllIsExplicit(t *testing.T) {
	require.ErrorContains(t, options{}.run(t.Context(), bench{}), "want -all or -suite NAME")
	for _, o := range []options{
		{all: true, suite: "property"}, {all: true, quick: true}, {all: true, plots: true}, {quick: true, stale: true},
		{suite: "property", plots: true}, {faults: true, stale: true}, {algorithms: true, faults: true},
	} {
		require.ErrorContains(t, o.run(t.Context(), bench{}), "cannot be combined")
	}
}

func TestFaultsNeedRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	require.ErrorIs(t, options{faults: true}.run(t.Context(), bench{}), exec.ErrNotFound)
}
