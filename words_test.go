package lazyreq_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	draw = flag.Int("draw", 20, "how many function names TestDrawFunctionNames logs")
	seed = flag.Uint64("seed", 1, "the seed TestDrawFunctionNames draws with")
)

var (
	word     = regexp.MustCompile(`[\pL\pN][\pL\pN'’-]*`)
	persons  = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whomever)\b`)
	speaking = regexp.MustCompile(`(?i)\b(tells?|told|says?)\b`)
	unwanted = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whomever|(?:tell|say)s?\s+(?:whether|if))\b`)
)

// TestUnwantedWords fails if a comment or a page of the documentation speaks of code as of
// persons. With -v it logs how often that and "tells" or "says" occur in a thousand words.
func TestUnwantedWords(t *testing.T) {
	var words, ofPersons, ofSpeaking int
	for path, prose := range prose(t) {
		text := strings.Join(prose, "\n")
		words += len(word.FindAllString(text, -1))
		ofPersons += len(persons.FindAllString(text, -1))
		ofSpeaking += len(speaking.FindAllString(text, -1))
		for _, paragraph := range prose {
			if found := unwanted.FindString(paragraph); found != "" {
				t.Errorf("%s: %q in:\n%s", path, found, paragraph)
			}
		}
	}
	require.Greater(t, words, 10_000, "the documentation was not found")
	perThousand := func(n int) float64 { return 1000 * float64(n) / float64(words) }
	t.Logf("%d words; per thousand: %.2f nobody or whoever, %.2f tells or says", words, perThousand(ofPersons), perThousand(ofSpeaking))
	require.LessOrEqual(t, perThousand(ofPersons), 0.3)
	require.LessOrEqual(t, perThousand(ofSpeaking), 1.0)
}

// TestDrawFunctionNames logs function names drawn at random from the whole tree. A name is
// good if a reader who has not seen the code can guess what the function does.
func TestDrawFunctionNames(t *testing.T) {
	var names []string
	fset := token.NewFileSet()
	for _, path := range files(t, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				name = receiver(fn.Recv.List[0].Type) + "." + name
			}
			names = append(names, filepath.ToSlash(filepath.Dir(path))+": "+name)
		}
	}
	require.GreaterOrEqual(t, len(names), *draw)
	slices.Sort(names)
	rng := rand.New(rand.NewPCG(*seed, 0))
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:*draw] {
		t.Log(name)
	}
}

func receiver(expr ast.Expr) string {
	switch x := expr.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return "?"
}

// prose returns the paragraphs of each file's documentation: comments of Go and Lua, and
// Markdown outside of code blocks.
func prose(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, path := range files(t, ".go", ".lua", ".md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		switch filepath.Ext(path) {
		case ".go":
			out[path] = goComments(path, text)
		case ".lua":
			out[path] = luaComments(string(text))
		default:
			out[path] = markdown(string(text))
		}
	}
	return out
}

// goComments joins comments on consecutive lines, so that a phrase is found across a break.
func goComments(path string, text []byte) []string {
	fset := token.NewFileSet()
	file := fset.AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	var out []string
	for end := -1; ; {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return out
		}
		if tok != token.COMMENT {
			continue
		}
		lit = strings.Trim(lit, "/* \t\n")
		line := file.Line(pos)
		if line == end+1 {
			out[len(out)-1] += " " + lit
		} else {
			out = append(out, lit)
		}
		end = line
	}
}

func luaComments(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if _, comment, ok := strings.Cut(line, "--"); ok {
			out = append(out, strings.TrimSpace(comment))
		}
	}
	return []string{strings.Join(out, " ")}
}

func markdown(text string) []string {
	var out []string
	for i, block := range strings.Split(text, "```") {
		if i%2 == 0 {
			out = append(out, strings.Split(block, "\n\n")...)
		}
	}
	for i, paragraph := range out {
		out[i] = strings.Join(strings.Fields(paragraph), " ")
	}
	return out
}

// files returns the paths of the project's files with one of the endings, but for the file
// that lists the unwanted words.
func files(t *testing.T, endings ...string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case !d.IsDir() && path != "words_test.go" && slices.Contains(endings, filepath.Ext(path)):
			out = append(out, path)
		}
		return nil
	})
	require.NoError(t, err)
	return out
}
