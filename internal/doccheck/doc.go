// Package doccheck type-checks the Go blocks of Markdown pages. It is for tests.
//
// A block that begins with a package clause is a whole program. It must compile as it is.
//
// Any other block is a part. Its first declarations, and each func that begins a line, are declared in a package.
// Its other lines are statements, which may return an error. A part can use the package-level names of the page's
// other blocks and of the prelude (testdata/prelude.go). If a name has several declarations, the first one in
// this order counts: the part's own, that of the nearest block above, that of the first block below, that of the
// prelude. A part may leave variables, imports and labels unused.
//
// A part need not import packages. A package name means the last package that the page imports with this name, up
// to this block. If there is none, it means a package that the prelude imports, a package of lazyreq, of the
// standard library, or of a dependency, in this order. If several packages have the name, such as redisstore, the
// part must import one of them.
//
// The tests of the module lazyreq check most pages. The test of a nested module checks a page that uses packages which
// lazyreq does not require.
package doccheck
