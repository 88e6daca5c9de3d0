package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	// What only the pages use.
	_ "github.com/coder/websocket"
	_ "github.com/rs/cors"
	_ "github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	_ "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/lazyreq/lazyreq/bench/record"
	"github.com/lazyreq/lazyreq/internal/doccheck"
)

// These pages' blocks use packages that the library doesn't require.
func TestDocumentedGo(t *testing.T) {
	pages, err := filepath.Glob("../docs/coming-from-*.md")
	require.NoError(t, err)
	doccheck.Test(t, append(pages, "../docs/recipes.md")...)
}

// A new run of a suite must change the tables of its section.
func TestTablesNameTheSourceOfTheirFigures(t *testing.T) {
	text, err := os.ReadFile("../docs/benchmarks.md")
	require.NoError(t, err)
	tables := map[string]int{}
	for i, section := range strings.Split(string(text), "\n## ") {
		if i == 0 {
			continue
		}
		suite, _, _ := strings.Cut(section, "\n")
		if suite == "faults" { // package faults has a test of its own
			continue
		}
		rec, err := record.Read(record.Path("results", suite, false))
		require.NoError(t, err)
		paragraphs := strings.Split(strings.TrimSpace(section), "\n\n")
		for j, p := range paragraphs {
			if strings.HasPrefix(p, "|") {
				tables[suite]++
				require.Equal(t, rec.Source(), paragraphs[j+1], "below table %d of %s", tables[suite], suite)
			}
		}
	}
	for _, s := range suites {
		require.NotZero(t, tables[s.Name], s.Name)
	}
}
