package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/harness"
)

// steady is a contender with the same figures in each round.
type steady map[string]float64

func (s steady) Round(context.Context) (map[string]float64, error) { return s, nil }
func (s steady) Close() error                                      { return nil }

// suite is a small suite that ends with err.
func suite(err error) harness.Suite {
	contender := func(name string, ours bool, time float64) harness.Contender {
		return harness.Contender{Name: name, Ours: ours, Start: func(context.Context) (harness.Instance, error) {
			return steady{"time": time}, nil
		}}
	}
	return harness.Suite{Name: "small", About: "what is small", Run: func(ctx context.Context, r *harness.Run) error {
		metrics := []harness.Metric{{Name: "time", Unit: "ns/op"}}
		missing := harness.Contender{Name: "gone", Start: func(context.Context) (harness.Instance, error) {
			return nil, fmt.Errorf("%w: no node", harness.ErrMissing)
		}}
		for _, name := range []string{"one", "another"} {
			if err := r.Compare(ctx, name, 3, metrics, []harness.Contender{contender("lazyreq", true, 2), contender("theirs", false, 1234), missing}); err != nil {
				return err
			}
		}
		return err
	}}
}

func TestRunSuiteSavesLinesAndMeta(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	o := options{results: dir, json: true, out: io.Discard}
	require.NoError(t, o.runSuite(t.Context(), suite(nil)))
	text, err := os.ReadFile(filepath.Join(dir, "small.json"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 6)
	require.JSONEq(t, `{"suite":"small","case":"one","contender":"theirs","metric":"time","median":1234,"min":1234,"max":1234,"unit":"ns/op","ratio":617}`, lines[1])
	about, err := os.ReadFile(filepath.Join(dir, "small.meta.json"))
	require.NoError(t, err)
	require.Contains(t, string(about), `"about": "what is small"`)
}

func TestFailedRunSavesNothing(t *testing.T) {
	dir := t.TempDir()
	boom := fmt.Errorf("boom")
	require.ErrorIs(t, options{results: dir, json: true, out: io.Discard}.runSuite(t.Context(), suite(boom)), boom)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestTable(t *testing.T) {
	r := harness.NewRun("small", false, nil)
	s := suite(nil)
	require.NoError(t, s.Run(t.Context(), r))
	var b bytes.Buffer
	require.NoError(t, writeTable(&b, s, r.Results()))
	require.Equal(t, `small: what is small
case     metric  contender  median   min   max  unit    ratio  note

one      time    lazyreq         2     2     2  ns/op
one      time    theirs       1234  1234  1234  ns/op  617.00
one      time    gone            –     –     –  ns/op          missing: no node

another  time    lazyreq         2     2     2  ns/op
another  time    theirs       1234  1234  1234  ns/op  617.00
another  time    gone            –     –     –  ns/op          missing: no node

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
	require.ErrorContains(t, options{suite: "nope"}.run(t.Context()), "property, counter, server, session, prefetch, redis, denycache")
}
