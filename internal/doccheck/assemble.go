package doccheck

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
)

// assemble returns the files of the package in which block i of a page is checked, its own first.
func (c *checker) assemble(page []unit, i int) []*ast.File {
	u := page[i]
	if u.program {
		return []*ast.File{u.file}
	}
	others := slices.Clone(page[:i])
	slices.Reverse(others)
	others = append(append(others, page[i+1:]...), c.prelude)

	taken := map[string]bool{"main": true, "init": true, "_": true} // and names of the block, or of a nearer one
	for _, spec := range u.file.Imports {
		taken[c.importName(spec)] = true
	}
	for _, decl := range u.file.Decls {
		for _, name := range declaredNames(decl) {
			taken[name] = true
		}
	}
	own := *u.file
	files := []*ast.File{&own}
	inForce := []map[string]string{c.importsInForce(page[:i+1])}
	for _, other := range others {
		files = append(files, withoutNames(other.file, taken))
		inForce = append(inForce, c.importsInForce(append(slices.Clone(before(page, other)), other)))
	}
	declared := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			for _, name := range declaredNames(decl) {
				declared[name] = true
			}
		}
	}
	for k, file := range files {
		c.addImports(file, inForce[k], declared)
	}
	return files
}

// before returns the blocks of the page above u.
func before(page []unit, u unit) []unit {
	return page[:max(0, slices.IndexFunc(page, func(other unit) bool { return other.file == u.file }))]
}

// withoutNames returns a part of a file: the declarations whose names are not taken. It takes their
// names. A method stays if the type that the file declares for it does.
func withoutNames(file *ast.File, taken map[string]bool) *ast.File {
	part := &ast.File{Name: ast.NewIdent("doc"), Package: file.Package, FileStart: file.FileStart, FileEnd: file.FileEnd}
	refused := map[string]bool{} // by what another file declares
	for _, decl := range file.Decls {
		for _, name := range declaredNames(decl) {
			refused[name] = taken[name]
		}
	}
	isRefused := func(name string) bool { return refused[name] }
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if isRefused(declaredNames(d)[0]) || d.Recv != nil && isRefused(receiver(d)) {
				continue
			}
		case *ast.GenDecl:
			kept := *d
			kept.Specs = slices.DeleteFunc(slices.Clone(d.Specs), func(spec ast.Spec) bool {
				return slices.ContainsFunc(specNames(spec), isRefused)
			})
			if d.Tok == token.IMPORT || len(kept.Specs) == 0 {
				continue
			}
			decl = &kept
		}
		part.Decls = append(part.Decls, decl)
		for _, name := range declaredNames(decl) {
			taken[name] = true
		}
	}
	return part
}

// declaredNames returns the package-level names of a declaration; a method's is T.m.
func declaredNames(decl ast.Decl) []string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv != nil {
			return []string{receiver(decl) + "." + decl.Name.Name}
		}
		return []string{decl.Name.Name}
	case *ast.GenDecl:
		var names []string
		for _, spec := range decl.Specs {
			names = append(names, specNames(spec)...)
		}
		return names
	}
	return nil
}

func specNames(spec ast.Spec) []string {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []string{spec.Name.Name}
	case *ast.ValueSpec:
		var names []string
		for _, name := range spec.Names {
			names = append(names, name.Name)
		}
		return names
	}
	return nil
}

// receiver returns the name of the type that a method belongs to.
func receiver(decl *ast.FuncDecl) string {
	expr := decl.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// importsInForce returns the paths of the packages that the prelude and the blocks import, by name. A
// later import replaces an earlier one.
func (c *checker) importsInForce(blocks []unit) map[string]string {
	paths := map[string]string{}
	for _, u := range append([]unit{c.prelude}, blocks...) {
		for _, spec := range u.file.Imports {
			paths[c.importName(spec)] = importPath(spec)
		}
	}
	return paths
}

func (c *checker) importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return c.packages.names[importPath(spec)]
}

// addImports imports the packages whose names a file uses, unless it imports them or the package declares them.
func (c *checker) addImports(file *ast.File, inForce map[string]string, declared map[string]bool) {
	own := map[string]bool{}
	for _, spec := range file.Imports {
		own[c.importName(spec)] = true
	}
	decl := &ast.GenDecl{Tok: token.IMPORT}
	for name := range selectedNames(file) {
		path := inForce[name]
		if found := c.packages.find(name); path == "" && len(found) == 1 {
			path = found[0]
		}
		if path != "" && !own[name] && !declared[name] {
			decl.Specs = append(decl.Specs, &ast.ImportSpec{Name: ast.NewIdent(name), Path: &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(path)}})
		}
	}
	if len(decl.Specs) > 0 {
		file.Decls = append([]ast.Decl{decl}, file.Decls...)
	}
}
