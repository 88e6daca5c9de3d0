package proxy

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Parse reads a configuration in YAML. Unknown and repeated fields are errors, which tell
// line and field, and so is a value of another kind, and a field without one. name is what
// they call the file. What the fields mean is checked by [New].
func Parse(name string, data []byte) (Config, error) {
	var c Config
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return Config{}, parseError(name, err)
	}
	if len(file.Docs) > 1 {
		return Config{}, fmt.Errorf("%s: there is more than one document, of which only the first would count", name)
	}
	c.source = &source{name, file}
	var body ast.Node
	if len(file.Docs) == 1 {
		body = file.Docs[0].Body
	}
	if _, comment := body.(*ast.CommentGroupNode); body == nil || comment { // an empty file
		return c, nil
	}
	check := &checker{name: name}
	body = check.value(body, reflect.TypeFor[Config]())
	if len(check.errs) > 0 {
		return Config{}, errors.Join(check.errs...)
	}
	if err := yaml.NodeToValue(body, &c, yaml.Strict()); err != nil {
		return Config{}, parseError(name, err)
	}
	return c, nil
}

// parseError puts the file's name before the line, and leaves out the picture of the
// source around it.
func parseError(name string, err error) error {
	text, _, _ := strings.Cut(strings.TrimSpace(yaml.FormatError(err, false, false)), "\n")
	if at, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "]"); ok && strings.HasPrefix(text, "[") {
		return fmt.Errorf("%s:%s:%s", name, at, rest)
	}
	return fmt.Errorf("%s: %s", name, text)
}

// source is where a configuration comes from.
type source struct {
	name string
	file *ast.File
}

// at returns file, line and column of a field such as rules[0].key, or of what is around
// it if it isn't there.
func (s *source) at(field string) string {
	for field != "" {
		if path, err := yaml.PathString("$." + field); err == nil {
			if node, err := path.FilterFile(s.file); err == nil && node != nil {
				at := node.GetToken().Position
				return fmt.Sprintf("%s:%d:%d", s.name, at.Line, at.Column)
			}
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return s.name
}

// FieldError says what is wrong with a field of a [Config].
type FieldError struct {
	// At is file, line and column, "" if the configuration comes from no file.
	At string
	// Field is its path, such as rules[0].key.
	Field string
	Err   error
}

// Error names place and field.
func (e *FieldError) Error() string {
	if e.At == "" {
		return e.Field + ": " + e.Err.Error()
	}
	return e.At + ": " + e.Field + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// faults collects what is wrong with a configuration.
type faults struct {
	source *source
	errs   []error
}

// add notes that a field is wrong.
func (f *faults) add(field string, err error) {
	e := &FieldError{Field: field, Err: err}
	if f.source != nil {
		e.At = f.source.at(field)
	}
	f.errs = append(f.errs, e)
}

func (f *faults) addf(field, format string, args ...any) { f.add(field, fmt.Errorf(format, args...)) }

func (f *faults) err() error { return errors.Join(f.errs...) }
