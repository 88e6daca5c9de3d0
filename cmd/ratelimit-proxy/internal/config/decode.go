package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Parse reads a configuration in YAML. name is the file's name in errors. Parse returns an error, with line and
// column, for unknown and repeated fields, for fields without a value, for values of another kind, and for zero and
// empty values that would mean the default. [Config.Resolve] checks the meaning of the values.
func Parse(name string, data []byte) (Config, error) {
	if !utf8.Valid(data) {
		return Config{}, fmt.Errorf("%s: is not text in UTF-8", name)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // a byte order mark, which some editors write
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return Config{}, syntaxError(name, err)
	}
	if len(file.Docs) > 1 {
		return Config{}, fmt.Errorf("%s: want one document, not %d", name, len(file.Docs))
	}
	c := Config{source: &source{name, map[string]string{}}}
	var body ast.Node
	if len(file.Docs) == 1 {
		body = file.Docs[0].Body
	}
	if _, comment := body.(*ast.CommentGroupNode); body == nil || comment { // the file is empty
		return c, nil
	}
	d := decoder{source: c.source}
	d.decode(body, reflect.ValueOf(&c).Elem(), "")
	if len(d.errs) > 0 {
		return Config{}, errors.Join(d.errs...)
	}
	return c, nil
}

// syntaxError returns the parser's error in one line: the file's name, line and column, and the message.
func syntaxError(name string, err error) error {
	text, _, _ := strings.Cut(strings.TrimSpace(yaml.FormatError(err, false, false)), "\n")
	if at, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "]"); ok && strings.HasPrefix(text, "[") {
		return fmt.Errorf("%s:%s:%s", name, at, rest)
	}
	return fmt.Errorf("%s: %s", name, text)
}

// source says where the fields of a configuration were set.
type source struct {
	name      string            // name of the file
	positions map[string]string // file, line and column, or flag, of each field, by its path such as rules[0].key
}

// SetOrigin records that a flag has set a field. Errors of the field then name the flag instead of a position in the
// file.
func (c *Config) SetOrigin(field, flag string) {
	if c.source == nil {
		c.source = &source{"", map[string]string{}}
	}
	maps.DeleteFunc(c.source.positions, func(path, _ string) bool {
		return strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[")
	})
	c.source.positions[field] = flag
}

// at returns the position of a field, or of the nearest field around it.
func (s *source) at(field string) string {
	if s == nil {
		return ""
	}
	for field != "" {
		if at, ok := s.positions[field]; ok {
			return at
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return s.name
}
