package doccheck_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentedRulesAreExamples checks that each block of docs/lazy.md that shows its output is the body of an example
// function. go test compares the output of examples.
func TestDocumentedRulesAreExamples(t *testing.T) {
	bodies := map[string]bool{}
	for _, pattern := range []string{"lazy/example*_test.go", "reqctx/example*_test.go"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			addExamples(t, path, bodies)
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/lazy.md"))
	require.NoError(t, err)
	shown := 0
	for _, rest := range strings.Split(string(page), "```go\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		if strings.Contains(block, "// Output:") {
			shown++
			require.True(t, bodies[strings.TrimSpace(block)], "no example has the body\n%s", block)
		}
	}
	require.Greater(t, shown, 3)
}

// addExamples adds the bodies of a file's example functions to bodies.
func addExamples(t *testing.T, path string, bodies map[string]bool) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") {
			body := text[fset.Position(fn.Body.Lbrace).Offset+1 : fset.Position(fn.Body.Rbrace).Offset]
			bodies[strings.TrimSpace(strings.ReplaceAll(string(body), "\n\t", "\n"))] = true
		}
	}
}
