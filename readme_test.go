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
