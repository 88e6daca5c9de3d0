package lazyreq_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/doccheck"
)

// checkedElsewhere has patterns of the pages that tests of other packages check: those whose blocks use modules
// that this one doesn't require, and the tutorial, whose programs run.
var checkedElsewhere = map[string]string{
	"docs/tutorial.md":      "examples/tutorial/tutorial_test.go",
	"docs/observing.md":     "examples/prometheus/main_test.go",
	"docs/recipes.md":       "bench/docs_test.go",
	"docs/coming-from-*.md": "bench/docs_test.go",
}

// pages returns the pages of the documentation.
func pages(t *testing.T) []string {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md", "bench/*.md"} {
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
		if !isCheckedElsewhere(t, page) {
			here = append(here, page)
		}
	}
	doccheck.Test(t, here...)
}

// TestDocumentedYAML fails if a block of the proxy's configuration has an error. A block with
// upstreams is a whole one.
func TestDocumentedYAML(t *testing.T) {
	part := regexp.MustCompile(`(?m)^(upstreams|listen|routes|rules):`)
	for _, page := range pages(t) {
		blocks, err := doccheck.Blocks(page)
		require.NoError(t, err)
		for _, b := range blocks {
			require.NotEmpty(t, b.Lang, "%s:%d: the block needs a language", page, b.Line)
			if b.Lang != "yaml" || !part.MatchString(b.Text) {
				continue
			}
			c, err := config.Parse(fmt.Sprintf("%s:%d", page, b.Line), []byte(b.Text))
			if err == nil && len(c.Upstreams) > 0 {
				_, err = c.Resolve()
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
}

func isCheckedElsewhere(t *testing.T, page string) bool {
	for pattern, test := range checkedElsewhere {
		if matched, _ := filepath.Match(pattern, page); matched {
			text, err := os.ReadFile(test)
			require.NoError(t, err)
			require.True(t, strings.Contains(string(text), pattern), "%s doesn't check %s", test, pattern)
			return true
		}
	}
	return false
}
