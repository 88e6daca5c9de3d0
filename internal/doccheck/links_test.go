package doccheck_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/doccheck"
)

var (
	code     = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks checks that the links within the documentation lead to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	for _, page := range doccheck.Pages(t, root) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
			} else if anchor != "" && !hasAnchor(t, target, anchor) {
				t.Errorf("%s: %s: no such heading", page, m[1])
			}
		}
	}
}

// TestLinkOfEachExample checks that examples/README.md lists every example.
func TestLinkOfEachExample(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "examples/README.md"))
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Join(root, "examples"))
	require.NoError(t, err)
	require.Greater(t, len(entries), 15)
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() {
			require.Contains(t, string(page), "| ["+name+"]("+name+") |")
		}
	}
}

// hasAnchor reports whether a page has a heading with this anchor.
func hasAnchor(t *testing.T, page, anchor string) bool {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		plain := noAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(plain, " ", "-") == anchor {
			return true
		}
	}
	return false
}
