package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Parse reads a configuration in YAML. It returns an error, with line and column, for
// unknown and repeated fields, for a field without a value, and for a value of another kind.
// name is the file's name in errors. [Config.Resolve] checks what the values mean.
func Parse(name string, data []byte) (Config, error) {
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

func (d *decoder) errorf(n ast.Node, format string, args ...any) {
	d.errs = append(d.errs, fmt.Errorf("%s:%s: %w", d.source.name, position(n), fmt.Errorf(format, args...)))
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
			d.errorf(n, "there is no anchor &%s before it", name)
		}
		return
	case *ast.TagNode:
		d.errorf(n, "%s: tags have no meaning here", n.GetToken().Value)
		return
	case *ast.NullNode:
		d.errorf(n, "has no value: set one, or omit the field for its default")
		return
	}
	d.source.positions[path] = position(n)
	_, isScalar := n.(ast.ScalarNode)
	switch t := to.Type(); {
	case t.Kind() == reflect.Pointer:
		to.Set(reflect.New(t.Elem()))
		d.decode(n, to.Elem(), path)
	case t == rateType:
		set(d, n, to, ParseRate)
	case t == sizeType:
		set(d, n, to, parseSize)
	case t == prefixType:
		set(d, n, to, parsePrefix)
	case t == listenerType && isScalar:
		d.decode(n, to.FieldByName("Address"), path+".address")
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		d.mapping(n, to, path)
	case t.Kind() == reflect.Slice:
		d.list(n, to, path)
	default:
		d.scalar(n, to)
	}
}

// set sets a value that parse reads.
func set[T any](d *decoder, n ast.Node, to reflect.Value, parse func(string) (T, error)) {
	if _, ok := n.(ast.ScalarNode); !ok {
		d.errorf(n, "want a single value")
		return
	}
	v, err := parse(n.GetToken().Value)
	if err != nil {
		d.errorf(n, "%w", err)
		return
	}
	to.Set(reflect.ValueOf(v))
}

func (d *decoder) list(n ast.Node, to reflect.Value, path string) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		d.errorf(n, "%q: want a list, such as [a, b]", n.GetToken().Value)
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), len(list.Values), len(list.Values)))
	for i, v := range list.Values {
		d.decode(v, to.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

// mapping sets the fields of a struct, or the entries of a map whose keys are text.
func (d *decoder) mapping(n ast.Node, to reflect.Value, path string) {
	var entries []*ast.MappingValueNode
	switch node := n.(type) {
	case *ast.MappingNode:
		entries = node.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{node}
	default:
		d.errorf(n, "%q: want fields, such as {name: value}", n.GetToken().Value)
	}
	if path != "" {
		path += "."
	}
	isMap := to.Kind() == reflect.Map
	if isMap {
		to.Set(reflect.MakeMap(to.Type()))
	}
	for _, e := range entries {
		name := e.Key.GetToken().Value
		if isMap {
			if _, isText := e.Key.(*ast.StringNode); !isText && !wholeNumber.MatchString(name) {
				d.errorf(e.Key, "%q is not text: put it in quotes", name)
				continue
			}
			v := reflect.New(to.Type().Elem()).Elem()
			d.decode(e.Value, v, path+name)
			to.SetMapIndex(reflect.ValueOf(name), v)
			continue
		}
		field := fieldNamed(to, name)
		if !field.IsValid() {
			d.errorf(e.Key, "unknown field %q, want one of %s", name, strings.Join(fieldNames(to.Type()), ", "))
			continue
		}
		d.decode(e.Value, field, path+name)
	}
}

// fieldNamed returns the field of a struct with a name in YAML, the zero Value if none has it.
func fieldNamed(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if name != "" && fieldName(v.Type().Field(i)) == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// wholeNumber matches a number that every reader of YAML takes for the same.
var wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// scalar sets a duration, a bool, a text or a whole number.
func (d *decoder) scalar(n ast.Node, to reflect.Value) {
	text := n.GetToken().Value
	switch {
	case to.Type() == durationType:
		v, err := parseDuration(text)
		if _, ok := n.(ast.ScalarNode); !ok || err != nil || text == "0" {
			d.errorf(n, "%q: want a time with its unit, such as 50ms: %s", text, timeUnits)
			return
		}
		to.SetInt(int64(v))
	case to.Kind() == reflect.Bool:
		v, ok := n.(*ast.BoolNode)
		if !ok {
			d.errorf(n, "%q: want true or false", text)
			return
		}
		to.SetBool(v.Value)
	case to.Kind() == reflect.String:
		switch v := n.(type) {
		case *ast.MappingNode:
			d.errorf(n, `%q: want text: what begins with { needs quotes, "{client.ip}"`, text)
		case *ast.LiteralNode:
			to.SetString(v.Value.Value)
		case ast.ScalarNode:
			to.SetString(text)
		default:
			d.errorf(n, "%q: want text", text)
		}
	default:
		v, err := strconv.ParseInt(text, 10, to.Type().Bits())
		if _, ok := n.(*ast.IntegerNode); !ok || err != nil || !wholeNumber.MatchString(text) {
			d.errorf(n, "%q: want a whole number", text)
			return
		}
		to.SetInt(v)
	}
}

// fieldNames returns the names in YAML of a struct's fields.
func fieldNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		if name := fieldName(t.Field(i)); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// fieldName returns the name of a field in YAML, or "" if it has none.
func fieldName(f reflect.StructField) string {
	if !f.IsExported() {
		return ""
	}
	return cmp.Or(f.Tag.Get("yaml"), strings.ToLower(f.Name))
}
