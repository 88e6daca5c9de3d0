package doccheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each page consists of the blocks, with lines of dashes between them. The first line of the first block is line 2 of the
// page.
var cases = []struct{ name, blocks, errs string }{
	{"a statement", `fmt.Println(req.Header.Get("X"), ctx.Err())`, ""},
	{"an unknown method", "req.Frobnicate()",
		"page.md:2: req.Frobnicate undefined (type *server.Request has no field or method Frobnicate)"},
	{"a wrong type", "n := 1\nn = w.Header()",
		"page.md:3: cannot use w.Header() (value of map type http.Header) as int value in assignment"},
	{"too few arguments", "w.Header().Get()", "page.md:2: not enough arguments in call to w.Header().Get"},
	{"too few results", "page := io.ReadAll(r.Body)",
		"page.md:2: assignment mismatch: 1 variable but io.ReadAll returns 2 values"},
	{"a value that is not used", "server.Options{}", "page.md:2: server.Options{} (value of struct type server.Options) is not used"},
	{"a syntax error", "f(]", "page.md:2: expected operand"},
	{"an ellipsis", "client.Ping(ctx)\n…", "page.md:3: expected statement, found 'ILLEGAL'"},
	{"an unknown name", "stroe.Take()", "page.md:2: undefined: stroe"},
	{"an unknown package", `import "example.com/none"`, "page.md:2: could not import example.com/none"},

	{"what is not used", "import \"io\"\nx := 1\nhere:\nfor {\n}", ""},
	{"errors", "err = r.ParseForm()\nif err != nil {\n\treturn err\n}\nn, err := w.Write(nil)", ""},
	{"a func below statements", "x := twice(1)\n\nfunc twice(n int) int { return 2 * n }\n\nx.y()",
		"page.md:6: x.y undefined (type int has no field or method y)"},
	{"declarations above statements", "type T struct{ n int }\n\nvar t = T{\n\tn: 1,\n}\n\nt.n++\n---\nt.n = \"\"",
		"page.md:11: cannot use \"\" (untyped string constant) as int value in assignment"},

	{"a name of another block", "var x int\n---\nx = \"\"", "page.md:5: cannot use \"\""},
	{"a name of a block below", "x = \"\"\n---\nvar x int", "page.md:2: cannot use \"\""},
	{"the nearest name above", "var x string\n---\nvar x int\n---\nx = \"\"\n---\nvar x string", "page.md:8: cannot use \"\""},
	{"a block's own name", "var x string\n---\nvar x int\n\nx = \"\"", "page.md:7: cannot use \"\""},
	{"a local name of another block", "x := 1\nx++\n---\nx++", "page.md:6: undefined: x"},
	{"a name of the prelude", "srv = 1", "page.md:2: cannot use 1"},
	{"a name in place of the prelude's", "var srv int\n---\nsrv = 1", ""},
	{"a type in place of the prelude's", "type Account struct{ Plan int }\n\nfunc (a Account) Free() bool { return a.Plan == 0 }\n---\na, err := User.Get(ctx)\na.Free()\na.Name = \"\"",
		"page.md:9: a.Name undefined"},
	{"methods go with their type", "type T int\n\nfunc (T) A() {}\n---\ntype T string\n\nT(\"\").A()", "page.md:9: T(\"\").A undefined"},
	{"an error of another block", "var x int = \"\"\n---\nx++", "page.md:2: cannot use \"\""},

	{"a name of several packages", "redisstore.New(client, redisstore.Options{})", "page.md:2: undefined: redisstore; import one of"},
	{"an import", "import \"github.com/lazyreq/lazyreq/session/redisstore\"\n\nvar o redisstore.Options = 1\n---\nvar p redisstore.Options = 1",
		"page.md:4: cannot use 1 (untyped int constant) as redisstore.Options value"},
	{"an import below", "redisstore.New()\n---\nimport \"github.com/lazyreq/lazyreq/session/redisstore\"", "page.md:2: undefined: redisstore"},
	{"an import by a name", "import in \"io\"\n\nvar reader in.Reader", ""},
	{"the house's package before others", "var o params.Options\nvar j json.Decoder\nj.Decode(1, 2)", "page.md:4: too many arguments in call to j.Decode"},

	{"a program", "package main\n\nfunc main() {}", ""},
	{"a program that imports too much", "package main\n\nimport \"io\"\n\nfunc main() {}", "page.md:4: \"io\" imported and not used"},
	{"a program that imports too little", "// A comment.\npackage main\n\nfunc main() { io.EOF.Error() }", "page.md:5: undefined: io"},
	{"a program doesn't see other blocks", "var x int\n---\npackage main\n\nfunc main() { x++ }", "page.md:7: undefined: x"},
	{"a program's names", "package main\n\nimport \"io\"\n\nvar x io.Reader\n\nfunc main() { x.Read(nil) }\n---\nx.Close()", "page.md:11: x.Close undefined"},
}

func TestCheck(t *testing.T) {
	var pages []string
	folders := map[string]int{} // the index of a case
	for i, c := range cases {
		dir := t.TempDir()
		page := filepath.Join(dir, "page.md")
		folders[dir] = i
		text := "```go\n" + strings.ReplaceAll(c.blocks, "\n---\n", "\n```\n```go\n") + "\n```\n"
		require.NoError(t, os.WriteFile(page, []byte(text), 0o600))
		pages = append(pages, page)
	}
	errs, err := check(pages...)
	require.NoError(t, err)
	found := make([][]string, len(cases))
	for _, err := range errs {
		dir, _, _ := strings.Cut(err.Error(), "/page.md")
		i, ok := folders[dir]
		require.True(t, ok, "%v", err)
		found[i] = append(found[i], strings.TrimPrefix(err.Error(), dir+"/"))
	}
	for i, c := range cases {
		switch {
		case c.errs == "":
			require.Empty(t, found[i], c.name)
		default:
			require.NotEmpty(t, found[i], c.name)
			require.Contains(t, found[i][0], c.errs, c.name)
			if len(found[i]) > 1 {
				t.Logf("%s: %q", c.name, found[i][1:])
			}
		}
	}
}

func TestBlocks(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := "# Page\n\n- item\n\n  ```go title\n  if true {\n  \tf()\n  }\n  ```\n\n```\nplain\n```\n\n````yaml\n```\na: b\n````\n"
	require.NoError(t, os.WriteFile(page, []byte(text), 0o600))
	blocks, err := Blocks(page)
	require.NoError(t, err)
	require.Equal(t, []Block{
		{page, 6, "go", "if true {\n\tf()\n}\n"},
		{page, 12, "", "plain\n"},
		{page, 16, "yaml", "```\na: b\n"},
	}, blocks)
	_, err = Blocks("none.md")
	require.Error(t, err)
	_, err = check("none.md")
	require.Error(t, err)
}
