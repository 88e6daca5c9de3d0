package doccheck_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/doccheck"
)

// root is the folder of the repository.
const root = "../.."

// checkedElsewhere maps patterns of pages to the tests that check them in other packages. The blocks of these pages
// use modules that this module does not require, or, in the tutorial, are run as programs.
var checkedElsewhere = map[string]string{
	"docs/tutorial.md":      "examples/tutorial/tutorial_test.go",
	"docs/observing.md":     "examples/prometheus/main_test.go",
	"docs/recipes.md":       "bench/docs_test.go",
	"docs/coming-from-*.md": "bench/docs_test.go",
}

// TestDocumentedGo fails if a Go block of the documentation doesn't compile.
func TestDocumentedGo(t *testing.T) {
	var here []string
	for _, page := range doccheck.Pages(t, root) {
		if !isCheckedElsewhere(t, page) {
			here = append(here, page)
		}
	}
	doccheck.Test(t, here...)
}

func isCheckedElsewhere(t *testing.T, page string) bool {
	for pattern, test := range checkedElsewhere {
		if matched, _ := filepath.Match(filepath.Join(root, pattern), page); matched {
			text, err := os.ReadFile(filepath.Join(root, test))
			require.NoError(t, err)
			require.True(t, strings.Contains(string(text), pattern), "%s doesn't check %s", test, pattern)
			return true
		}
	}
	return false
}
