package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// decoder sets Go values from the nodes of a YAML file. It is stricter than the YAML library, which would read 1.5 as
// 1, 010 as 8 and an empty value as the default.
type decoder struct {
	source *source
	errs   []error
}

// position returns the file, line and column of a node.
func (d *decoder) position(n ast.Node) string {
	at := n.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", d.source.name, at.Line, at.Column)
}

// errorf reports an error of the field with this path. The path is "" for the whole file.
func (d *decoder) errorf(n ast.Node, path, format string, args ...any) {
	at, err := d.position(n), fmt.Errorf(format, args...)
	if path == "" {
		d.errs = append(d.errs, fmt.Errorf("%s: %w", at, err))
		return
	}
	d.errs = append(d.errs, &FieldError{at, path, err})
}

// decode sets to, which is the field with this path, to the value of a node.
func (d *decoder) decode(n ast.Node, to reflect.Value, path string) {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		d.errorf(n, path, "%s: anchors, aliases and tags are not supported", n.GetToken().Value)
		return
	case *ast.NullNode:
		d.errorf(n, path, "has no value: set one, or omit the field for its default")
		return
	}
	d.source.positions[path] = d.position(n)
	_, single := n.(ast.ScalarNode)
	switch t := to.Type(); {
	case t.Kind() == reflect.Pointer:
		to.Set(reflect.New(t.Elem()))
		d.decode(n, to.Elem(), path)
	case t == reflect.TypeFor[Listener]() && single:
		d.decode(n, to.FieldByName("Address"), path+".address")
	case t.Kind() == reflect.Slice:
		d.list(n, to, path)
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct && parsers[t] == nil:
		d.mapping(n, to, path)
	case !single:
		_, braces := n.(*ast.MappingNode)
		if braces && t.Kind() == reflect.String {
			d.errorf(n, path, `%q: want text: a text that begins with { needs quotes, "{client.ip}"`, n.GetToken().Value)
			return
		}
		d.errorf(n, path, "%q: want a single value", n.GetToken().Value)
	default:
		d.scalar(n, to, path)
	}
}

func (d *decoder) list(n ast.Node, to reflect.Value, path string) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		d.errorf(n, path, "%q: want a list, such as [a, b]", n.GetToken().Value)
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), len(list.Values), len(list.Values)))
	for i, v := range list.Values {
		d.decode(v, to.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

// mapping sets the fields of a struct or the entries of a map.
func (d *decoder) mapping(n ast.Node, to reflect.Value, path string) {
	var entries []*ast.MappingValueNode
	switch node := n.(type) {
	case *ast.MappingNode:
		entries = node.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{node}
	default:
		d.errorf(n, path, "%q: want fields, such as {name: value}", n.GetToken().Value)
	}
	if to.Kind() == reflect.Struct {
		for _, e := range entries {
			d.structField(e, to, path)
		}
		return
	}
	to.Set(reflect.MakeMap(to.Type()))
	for _, e := range entries {
		name := e.Key.GetToken().Value
		if _, isText := e.Key.(*ast.StringNode); !isText && !isWholeNumber(name) {
			d.errorf(e.Key, path, "%q is not text: put it in quotes", name)
			continue
		}
		v := reflect.New(to.Type().Elem()).Elem()
		d.decode(e.Value, v, path+"."+name)
		to.SetMapIndex(reflect.ValueOf(name), v)
	}
}

func (d *decoder) structField(e *ast.MappingValueNode, to reflect.Value, path string) {
	name := e.Key.GetToken().Value
	i := slices.Index(fieldNames(to.Type()), name)
	if i < 0 || name == "" {
		names := slices.DeleteFunc(fieldNames(to.Type()), func(name string) bool { return name == "" })
		d.errorf(e.Key, path, "unknown field %q, want one of %s", name, strings.Join(names, ", "))
		return
	}
	if path != "" {
		path += "."
	}
	before := len(d.errs)
	d.decode(e.Value, to.Field(i), path+name)
	if len(d.errs) == before && meansDefault(to.Field(i), name) {
		d.errorf(e.Value, path+name, "is empty or zero: set another value, or omit the field for its default")
	}
}

// fieldNames returns the names of a struct's fields in YAML. A field that is not exported has the name "".
func fieldNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f, name := t.Field(i), ""
		if f.IsExported() {
			name = cmp.Or(f.Tag.Get("yaml"), strings.ToLower(f.Name))
		}
		names = append(names, name)
	}
	return names
}

// notEmpty lists fields for which an empty list or map is an error, because it would be replaced by a default.
var notEmpty = []string{"listen", "routes", "methods", "hosts", "paths", "headers", "keys"}

// meansDefault reports whether a field has a value that the default would replace.
func meansDefault(field reflect.Value, name string) bool {
	switch field.Kind() {
	case reflect.String, reflect.Int, reflect.Int64:
		return field.IsZero()
	case reflect.Slice, reflect.Map:
		return field.Len() == 0 && slices.Contains(notEmpty, name)
	default:
		return false
	}
}

// parsers maps types to functions that parse a value of the type.
var parsers = map[reflect.Type]func(string) (any, error){
	reflect.TypeFor[Rate]():          parserOf(ParseRate),
	reflect.TypeFor[Size]():          parserOf(parseSize),
	reflect.TypeFor[netip.Prefix]():  parserOf(parsePrefix),
	reflect.TypeFor[time.Duration](): parserOf(parseDuration),
}

func parserOf[T any](parse func(string) (T, error)) func(string) (any, error) {
	return func(text string) (any, error) { return parse(text) }
}

// isWholeNumber reports whether text is a decimal number that all YAML parsers read alike. They differ for 010, for
// example.
func isWholeNumber(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == text
}

// scalar sets to from a node that is neither a list nor a mapping.
func (d *decoder) scalar(n ast.Node, to reflect.Value, path string) {
	text := n.GetToken().Value
	if parse := parsers[to.Type()]; parse != nil {
		v, err := parse(text)
		if err != nil {
			d.errorf(n, path, "%w", err)
			return
		}
		to.Set(reflect.ValueOf(v))
		return
	}
	switch to.Kind() {
	case reflect.Bool:
		v, ok := n.(*ast.BoolNode)
		if !ok {
			d.errorf(n, path, "%q: want true or false", text)
			return
		}
		to.SetBool(v.Value)
	case reflect.String:
		if v, ok := n.(*ast.LiteralNode); ok {
			text = v.Value.Value
		}
		to.SetString(text)
	default:
		v, err := strconv.ParseInt(text, 10, to.Type().Bits())
		if _, ok := n.(*ast.IntegerNode); !ok || err != nil || !isWholeNumber(text) {
			d.errorf(n, path, "%q: want a whole number", text)
			return
		}
		to.SetInt(v)
	}
}
