package doccheck

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
)

// assemble returns the files of the package in which block i of a page is checked. The block's own file is first.
func (c *checker) assemble(page []unit, i int) []*ast.File {
	u := page[i]
	if u.program {
		return []*ast.File{u.file}
	}
	taken := map[string]bool{"main": true, "init": true, "_": true} // names of the block or of a nearer one
	for _, spec := range u.file.Imports {
		taken[c.importName(spec)] = true
	}
	for _, decl := range u.file.Decls {
		for _, name := range declaredNames(decl) {
			taken[name] = true
		}
	}
	own := *u.file
	files, inForce := []*ast.File{&own}, []map[string]string{c.importsInForce(page[:i+1])}
	add := func(other unit, blocks []unit) {
		files, inForce = append(files, withoutNames(other.file, taken)), append(inForce, c.importsInForce(blocks))
	}
	for k := i - 1; k >= 0; k-- {
		add(page[k], page[:k+1])
	}
	for k := i + 1; k < len(page); k++ {
		add(page[k], page[:k+1])
	}
	add(c.prelude, nil)
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

// withoutNames returns a file with only the declarations whose names are not taken, and takes these names. A method is
// left out together with its type.
func withoutNames(file *ast.File, taken map[string]bool) *ast.File {
	part := &ast.File{Name: ast.NewIdent("doc"), Package: file.Package, FileStart: file.FileStart, FileEnd: file.FileEnd}
	refused := map[string]bool{} // names that another file declares
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

// declaredNames returns the package-level names of a declaration. The name of a method is T.m.
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

// importsInForce returns the paths of the packages that the prelude and the blocks import, by name. A later import
// replaces an earlier one.
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

// addImports imports the packages whose names a file uses, unless the file imports or the package declares the name.
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
