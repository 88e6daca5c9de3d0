// Package doccheck type-checks the Go blocks of Markdown pages. It is for tests.
//
// A block that begins with a package clause is a whole program: it must compile as it stands.
//
// Any other block is a part. The declarations that it begins with, and each func that begins a
// line, are declared in a package; its other lines are statements, which may return an error. A part
// may use the package-level names that it declares, those of the page's other blocks, and those
// of the prelude (testdata/prelude.go). If several declare a name, the block's own counts,
// then the nearest block above, then the first below, then the prelude. Variables, imports
// and labels that a part doesn't use are no error.
//
// A part need not import packages. A name is that of the last package that the page imports
// by it, up to this block; then of one that the prelude imports, of a package of lazyreq, of the standard
// library, and of a dependency. A name that several of them have, such as redisstore, needs an import:
// a part may begin with it.
//
// The tests of the module lazyreq check a page, unless it uses packages that this module doesn't
// require; then a test of a nested module does.
package doccheck
