package doccheck

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/prelude.go
var preludeText string

// Test fails t for each error in the Go blocks of pages. It uses the packages of the module that contains the working
// directory.
func Test(t testing.TB, pages ...string) {
	t.Helper()
	errs, err := check(pages...)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range errs {
		t.Error(err)
	}
}

// check type-checks the Go blocks of pages. Each error that it finds begins with page, line and column.
func check(pages ...string) ([]error, error) {
	c := &checker{fset: token.NewFileSet()}
	var err error
	prelude := Block{Page: "prelude.go", Line: 1, Text: preludeText}
	if c.prelude, err = parse(c.fset, prelude); err != nil {
		return nil, err
	}
	for _, page := range pages {
		if err := c.read(page); err != nil {
			return nil, err
		}
	}
	if c.packages, err = listPackages(); err != nil {
		return nil, err
	}
	if c.importer, err = newImporter(c.fset, c.used()); err != nil {
		return nil, err
	}
	c.check(c.prelude, []*ast.File{c.prelude.file})
	for _, page := range c.pages {
		for i, u := range page {
			c.check(u, c.assemble(page, i))
		}
	}
	return c.errs, nil
}

// checker holds the pages and the results of one call of check.
type checker struct {
	fset     *token.FileSet
	packages *packages
	prelude  unit
	pages    [][]unit
	importer types.Importer
	errs     []error
}

func (c *checker) read(page string) error {
	blocks, err := Blocks(page)
	if err != nil {
		return err
	}
	var units []unit
	for _, b := range blocks {
		if b.Lang != "go" {
			continue
		}
		u, err := parse(c.fset, b)
		if err != nil {
			c.errs = append(c.errs, err)
			continue
		}
		units = append(units, u)
	}
	c.pages = append(c.pages, units)
	return nil
}

// used returns the paths of the module's packages that the blocks may use.
func (c *checker) used() []string {
	var paths []string
	for _, page := range append(c.pages, []unit{c.prelude}) {
		for _, u := range page {
			for _, spec := range u.file.Imports {
				paths = append(paths, importPath(spec))
			}
			for name := range selectedNames(u.file) {
				if found := c.packages.find(name); len(found) == 1 {
					paths = append(paths, found...)
				}
			}
		}
	}
	slices.Sort(paths)
	paths = slices.DeleteFunc(slices.Compact(paths), func(path string) bool { return c.packages.names[path] == "" })
	return append(paths, "errors") // go list without a path means the working directory
}

// check checks one package and keeps the errors in unit u.
func (c *checker) check(u unit, files []*ast.File) {
	conf := types.Config{Importer: c.importer, Error: func(err error) {
		e := err.(types.Error)
		if e.Pos < u.file.FileStart || e.Pos > u.file.FileEnd || !u.program && unused(e) {
			return
		}
		if name, ok := strings.CutPrefix(e.Msg, "undefined: "); ok {
			if paths := c.packages.find(name); len(paths) > 1 {
				e.Msg += "; import one of " + strings.Join(paths, ", ")
			}
		}
		c.errs = append(c.errs, e)
	}}
	_, _ = conf.Check(files[0].Name.Name, c.fset, files, nil)
}

// unused reports whether e is about an unused variable, import or label.
func unused(e types.Error) bool {
	return strings.Contains(e.Msg, "declared and not used") || strings.HasSuffix(e.Msg, " and not used")
}

func importPath(spec *ast.ImportSpec) string {
	path, _ := strconv.Unquote(spec.Path.Value)
	return path
}

// selectedNames returns each x of an expression x.y in file.
func selectedNames(file *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok {
				names[x.Name] = true
			}
		}
		return true
	})
	return names
}
