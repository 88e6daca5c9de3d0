package config

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// set sets a value that parse reads.
func set[T any](d *decoder, n ast.Node, to reflect.Value, path string, parse func(string) (T, error)) {
	if _, ok := n.(ast.ScalarNode); !ok {
		d.errorf(n, path, "want a single value")
		return
	}
	v, err := parse(n.GetToken().Value)
	if err != nil {
		d.errorf(n, path, "%w", err)
		return
	}
	to.Set(reflect.ValueOf(v))
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

// mapping sets the fields of a struct, or the entries of a map whose keys are text.
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
	if to.Kind() == reflect.Map {
		to.Set(reflect.MakeMap(to.Type()))
	}
	for _, e := range entries {
		if to.Kind() == reflect.Map {
			d.mapEntry(e, to, path)
		} else {
			d.structField(e, to, path)
		}
	}
}

func (d *decoder) mapEntry(e *ast.MappingValueNode, to reflect.Value, path string) {
	name := e.Key.GetToken().Value
	if _, isText := e.Key.(*ast.StringNode); !isText && !wholeNumber.MatchString(name) {
		d.errorf(e.Key, path, "%q is not text: put it in quotes", name)
		return
	}
	v := reflect.New(to.Type().Elem()).Elem()
	d.decode(e.Value, v, path+"."+name)
	to.SetMapIndex(reflect.ValueOf(name), v)
}

func (d *decoder) structField(e *ast.MappingValueNode, to reflect.Value, path string) {
	name := e.Key.GetToken().Value
	field := fieldNamed(to, name)
	if !field.IsValid() {
		d.errorf(e.Key, path, "unknown field %q, want one of %s", name, strings.Join(fieldNames(to.Type()), ", "))
		return
	}
	if path != "" {
		path += "."
	}
	before := len(d.errs)
	d.decode(e.Value, field, path+name)
	if len(d.errs) == before && meansDefault(field, name) {
		d.errorf(e.Value, path+name, "is empty or zero: set another value, or omit the field for its default")
	}
}

// notEmpty are the lists and maps whose default is not that they are empty.
var notEmpty = []string{"listen", "routes", "methods", "hosts", "paths", "headers", "keys"}

// meansDefault reports whether the value of a field would be replaced by another one, its default.
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
func (d *decoder) scalar(n ast.Node, to reflect.Value, path string) {
	text := n.GetToken().Value
	switch {
	case to.Type() == durationType:
		v, err := parseDuration(text)
		if _, ok := n.(ast.ScalarNode); !ok || err != nil || text == "0" {
			d.errorf(n, path, "%q: want a time with its unit, such as 50ms: %s", text, timeUnits)
			return
		}
		to.SetInt(int64(v))
	case to.Kind() == reflect.Bool:
		v, ok := n.(*ast.BoolNode)
		if !ok {
			d.errorf(n, path, "%q: want true or false", text)
			return
		}
		to.SetBool(v.Value)
	case to.Kind() == reflect.String:
		switch v := n.(type) {
		case *ast.MappingNode:
			d.errorf(n, path, `%q: want text: what begins with { needs quotes, "{client.ip}"`, text)
		case *ast.LiteralNode:
			to.SetString(v.Value.Value)
		case ast.ScalarNode:
			to.SetString(text)
		default:
			d.errorf(n, path, "%q: want text", text)
		}
	default:
		v, err := strconv.ParseInt(text, 10, to.Type().Bits())
		if _, ok := n.(*ast.IntegerNode); !ok || err != nil || !wholeNumber.MatchString(text) {
			d.errorf(n, path, "%q: want a whole number", text)
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
