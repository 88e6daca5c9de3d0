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
	program bool // it begins with a package clause
	file    *ast.File
}

func parse(fset *token.FileSet, b Block) (unit, error) {
	parseText := func(text string) (*ast.File, error) {
		return parser.ParseFile(fset, b.Page, text, parser.SkipObjectResolution|parser.AllErrors)
	}
	line := fmt.Sprintf("//line %s:%d\n", filepath.Base(b.Page), b.Line) // so that positions are those of the page
	if packageClause.MatchString(b.Text) {
		file, err := parseText(line + b.Text)
		return unit{true, file}, err
	}
	file, err := parseText("package doc\n" + line + b.Text)
	if err != nil {
		declarations, statements := split(b.Text)
		file, err = parseText("package doc\n" + line + declarations +
			"\nfunc _() (err error) {{\n" + line + statements + "\n}; panic(0) }\n")
	}
	return unit{false, file}, err
}

// split separates the statements of text from its first declarations and from the functions that begin a line below.
// Both results have as many lines as text.
func split(text string) (declarations, statements string) {
	var inside, below bool // whether the line is inside of a declaration; below the first statement
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
