package lazyreq_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The first program of each of these is a whole one: it compiles as it stands.
func TestDocumentedProgramsCompile(t *testing.T) {
	for _, doc := range []string{"README.md", "docs/ratelimit.md", "docs/coord.md"} {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		_, rest, found := strings.Cut(string(text), "```go\n")
		require.True(t, found)
		program, _, found := strings.Cut(rest, "```")
		require.True(t, found)
		file := filepath.Join(t.TempDir(), "main.go")
		require.NoError(t, os.WriteFile(file, []byte(program), 0o600))
		out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput()
		require.NoError(t, err, doc+": "+string(out))
	}
}

// The Go blocks of this page are parts of programs that compile.
func TestDocumentedPartsCompile(t *testing.T) {
	trimmed := func(text string) string {
		var lines []string
		for line := range strings.Lines(text) {
			lines = append(lines, strings.TrimSpace(line))
		}
		return strings.Join(lines, "\n")
	}
	sources, err := filepath.Glob("examples/prometheus/*.go")
	require.NoError(t, err)
	var compiled strings.Builder
	for _, source := range sources {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		compiled.WriteString(trimmed(string(text)))
	}
	page, err := os.ReadFile("docs/observing.md")
	require.NoError(t, err)
	blocks := strings.Split(string(page), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		require.Contains(t, compiled.String(), strings.TrimSpace(trimmed(block)))
	}
}
