package config

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Parse reads a configuration in YAML. It returns an error, with line and column, for
// unknown and repeated fields, for a field without a value, for a value of another kind, and for
// zero and empty values, which would mean the default.
// name is the file's name in errors. [Config.Resolve] checks what the values mean.
func Parse(name string, data []byte) (Config, error) {
	if !utf8.Valid(data) {
		return Config{}, fmt.Errorf("%s: is not text in UTF-8", name)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the byte order mark of some editors
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return Config{}, syntaxError(name, err)
	}
	if len(file.Docs) > 1 {
		return Config{}, fmt.Errorf("%s: want one document, not %d", name, len(file.Docs))
	}
	c := Config{source: &source{name: name, positions: map[string]string{}}}
	var body ast.Node
	if len(file.Docs) == 1 {
		body = file.Docs[0].Body
	}
	if _, comment := body.(*ast.CommentGroupNode); body == nil || comment { // an empty file
		return c, nil
	}
	d := decoder{source: c.source, anchors: map[string]ast.Node{}}
	d.decode(body, reflect.ValueOf(&c).Elem(), "")
	if len(d.errs) > 0 {
		return Config{}, errors.Join(d.errs...)
	}
	return c, nil
}

// syntaxError returns the parser's error with the file's name before the line, and without the
// excerpt of the source.
func syntaxError(name string, err error) error {
	text, _, _ := strings.Cut(strings.TrimSpace(yaml.FormatError(err, false, false)), "\n")
	if at, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "]"); ok && strings.HasPrefix(text, "[") {
		return fmt.Errorf("%s:%s:%s", name, at, rest)
	}
	return fmt.Errorf("%s: %s", name, text)
}

// source is the file that a configuration comes from, and where its fields are.
type source struct {
	name      string
	positions map[string]string // line and column, by a field's path such as rules[0].key
}

// at returns file, line and column of a field, or of the nearest field around it.
func (s *source) at(field string) string {
	for field != "" {
		if at, ok := s.positions[field]; ok {
			return s.name + ":" + at
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return s.name
}

// decoder sets Go values from the nodes of a YAML file. The YAML library's own decoder would
// read 1.5 as 1, 010 as 8, and nothing as the default.
type decoder struct {
	source  *source
	anchors map[string]ast.Node
	errs    []error
}

func position(n ast.Node) string {
	at := n.GetToken().Position
	return fmt.Sprintf("%d:%d", at.Line, at.Column)
}

// errorf reports an error of the field with this path, "" for the whole file.
func (d *decoder) errorf(n ast.Node, path, format string, args ...any) {
	at, err := d.source.name+":"+position(n), fmt.Errorf(format, args...)
	if path == "" {
		d.errs = append(d.errs, fmt.Errorf("%s: %w", at, err))
		return
	}
	d.errs = append(d.errs, &FieldError{at, path, err})
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	prefixType   = reflect.TypeFor[netip.Prefix]()
	rateType     = reflect.TypeFor[Rate]()
	sizeType     = reflect.TypeFor[Size]()
	listenerType = reflect.TypeFor[Listener]()
)

// decode sets to, which is the field with this path, from a node.
func (d *decoder) decode(n ast.Node, to reflect.Value, path string) {
	switch node := n.(type) {
	case *ast.AnchorNode:
		d.decode(node.Value, to, path)
		d.anchors[node.Name.GetToken().Value] = node.Value // now, so that none contains itself
		return
	case *ast.AliasNode:
		name := node.Value.GetToken().Value
		if value, ok := d.anchors[name]; ok {
			d.decode(value, to, path)
		} else {
			d.errorf(n, path, "there is no anchor &%s before it", name)
		}
		return
	case *ast.TagNode:
		d.errorf(n, path, "%s: tags have no meaning here", n.GetToken().Value)
		return
	case *ast.NullNode:
		d.errorf(n, path, "has no value: set one, or omit the field for its default")
		return
	}
	d.source.positions[path] = position(n)
	_, isScalar := n.(ast.ScalarNode)
	switch t := to.Type(); {
	case t.Kind() == reflect.Pointer:
		to.Set(reflect.New(t.Elem()))
		d.decode(n, to.Elem(), path)
	case t == rateType:
		set(d, n, to, path, ParseRate)
	case t == sizeType:
		set(d, n, to, path, parseSize)
	case t == prefixType:
		set(d, n, to, path, parsePrefix)
	case t == listenerType && isScalar:
		d.decode(n, to.FieldByName("Address"), path+".address")
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		d.mapping(n, to, path)
	case t.Kind() == reflect.Slice:
		d.list(n, to, path)
	default:
		d.scalar(n, to, path)
	}
}
