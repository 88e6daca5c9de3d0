package lazyreq_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/doccheck"
)

// checkedElsewhere has the pages whose blocks use modules that this one doesn't require, and
// the test that checks them.
var checkedElsewhere = map[string]string{
	"docs/observing.md": "examples/prometheus/main_test.go",
}

func pages(t *testing.T) []string {
	var pages []string
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	require.Greater(t, len(pages), 20)
	return pages
}

// TestDocumentedGo fails if a Go block of the documentation doesn't compile.
func TestDocumentedGo(t *testing.T) {
	var here []string
	for _, page := range pages(t) {
		test := checkedElsewhere[page]
		if test == "" {
			here = append(here, page)
			continue
		}
		text, err := os.ReadFile(test)
		require.NoError(t, err)
		require.True(t, strings.Contains(string(text), page), "%s doesn't check %s", test, page)
	}
	doccheck.Test(t, here...)
}
