package doccheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	packageClause = regexp.MustCompile(`\A(\s|//.*\n)*package\s`)
	declaration   = regexp.MustCompile(`^(import|const|type|var|func)\b`)
	function      = regexp.MustCompile(`^func (\(\w|\w)`)
	blank         = regexp.MustCompile(`^\s*(//.*)?$`)
	continued     = regexp.MustCompile(`^([\s)}]|$)`)
)

// unit is a parsed block.
type unit struct {
	block   Block
	program bool // it begins with a package clause
	file    *ast.File
}

func parse(fset *token.FileSet, b Block) (unit, error) {
	if packageClause.MatchString(b.Text) {
		file, err := parseText(fset, b, lineComment(b)+b.Text)
		return unit{b, true, file}, err
	}
	file, err := parseText(fset, b, "package doc\n"+lineComment(b)+b.Text)
	if err == nil {
		return unit{b, false, file}, nil
	}
	declarations, statements := split(b.Text)
	file, err = parseText(fset, b, "package doc\n"+lineComment(b)+declarations+
		"\nfunc _() (err error) {{\n"+lineComment(b)+statements+"\n}; panic(0) }\n")
	return unit{b, false, file}, err
}

func parseText(fset *token.FileSet, b Block, text string) (*ast.File, error) {
	return parser.ParseFile(fset, b.Page, text, parser.SkipObjectResolution|parser.AllErrors)
}

// lineComment makes positions those of the page.
func lineComment(b Block) string {
	return fmt.Sprintf("//line %s:%d\n", filepath.Base(b.Page), b.Line)
}

// split separates the declarations that text begins with, and the functions that begin a line
// below, from the statements. Both results have as many lines as text.
func split(text string) (declarations, statements string) {
	var inside, below bool // of a declaration; of the first statement
	for line := range strings.Lines(text) {
		switch {
		case inside && continued.MatchString(line):
		case below:
			inside = function.MatchString(line)
		default:
			inside = declaration.MatchString(line)
			below = !inside && !blank.MatchString(line)
		}
		if inside {
			declarations, statements = declarations+line, statements+"\n"
		} else {
			declarations, statements = declarations+"\n", statements+line
		}
	}
	return declarations, statements
}
