package proxy

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// UnmarshalYAML reads a rate.
func (r *Rate) UnmarshalYAML(node ast.Node) error { return textAt(node, r) }

// UnmarshalYAML reads a size.
func (s *Size) UnmarshalYAML(node ast.Node) error { return textAt(node, s) }

// UnmarshalYAML reads a network.
func (n *Network) UnmarshalYAML(node ast.Node) error { return textAt(node, n) }

// textAt reads a scalar, and says of an error where it is, which the package for YAML
// doesn't for an UnmarshalText.
func textAt(node ast.Node, to encoding.TextUnmarshaler) error {
	err := errors.New("want a single value")
	if scalar, ok := node.(ast.ScalarNode); ok {
		err = to.UnmarshalText([]byte(scalar.GetToken().Value))
	}
	if err == nil {
		return nil
	}
	return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
}

// checker compares a configuration's text with its type, before it is decoded. The package
// for YAML would make 1 of 1.5, 8 of 010, "8" of a key 010, and the default of nothing.
type checker struct {
	name string // the file's
	errs []error
}

func (c *checker) addf(node ast.Node, format string, args ...any) {
	at := node.GetToken().Position
	c.errs = append(c.errs, fmt.Errorf("%s:%d:%d: %w", c.name, at.Line, at.Column, fmt.Errorf(format, args...)))
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	listenerType = reflect.TypeFor[Listener]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value checks the value of a type, and returns what is to be decoded in its place.
func (c *checker) value(node ast.Node, t reflect.Type) ast.Node {
	switch n := node.(type) {
	case *ast.AnchorNode:
		n.Value = c.value(n.Value, t)
		return n
	case *ast.AliasNode: // checked at its anchor
		return n
	case *ast.TagNode:
		c.addf(n, "%s: tags have no meaning here", n.GetToken().Value)
		return n
	case *ast.NullNode:
		c.addf(n, "has no value: give it one, or leave the field out for the default")
		return n
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return c.value(node, t.Elem())
	case reflect.PointerTo(t).Implements(textType): // which reads what is written
		return node
	case t == listenerType:
		if _, ok := node.(ast.ScalarNode); ok {
			return c.scalar(node, reflect.TypeFor[string]())
		}
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		c.fields(node, t)
	case reflect.Slice:
		list, ok := node.(*ast.SequenceNode)
		if !ok {
			c.addf(node, "%q: want a list, such as [a, b]", node.GetToken().Value)
			return node
		}
		for i, v := range list.Values {
			list.Values[i] = c.value(v, t.Elem())
		}
	default:
		return c.scalar(node, t)
	}
	return node
}

// fields checks the values of a mapping.
func (c *checker) fields(node ast.Node, t reflect.Type) {
	var entries []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		entries = n.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{n}
	default:
		c.addf(node, "%q: want fields, such as {name: value}", node.GetToken().Value)
	}
	for _, e := range entries {
		written := e.Key.GetToken().Value
		_, isText := e.Key.(*ast.StringNode)
		switch {
		case e.Key.IsMergeKey():
		case t.Kind() == reflect.Map && !isText && !wholeNumber.MatchString(written):
			c.addf(e.Key, "%q is no text: it has to stand in quotes", written)
		case t.Kind() == reflect.Map:
			e.Value = c.value(e.Value, t.Elem())
		default:
			f, ok := fieldOf(t, written)
			if !ok {
				c.addf(e.Key, "unknown field %q", written)
				continue
			}
			e.Value = c.value(e.Value, f.Type)
		}
	}
}

func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Tag.Get("yaml") == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// wholeNumber is a number that means the same to everybody.
var wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// scalar checks a single value.
func (c *checker) scalar(node ast.Node, t reflect.Type) ast.Node {
	written := node.GetToken().Value
	_, isScalar := node.(ast.ScalarNode)
	_, isBlock := node.(*ast.LiteralNode)
	_, isMapping := node.(*ast.MappingNode)
	_, isInteger := node.(*ast.IntegerNode)
	_, isBool := node.(*ast.BoolNode)
	switch {
	case t == durationType:
		if d, err := parseTime(written); isScalar && err == nil && written != "0" {
			return stringAt(node, d.String())
		}
		c.addf(node, "%q: want a time with its unit, such as 50ms: %s", written, timeUnits)
	case t.Kind() == reflect.Bool:
		if !isBool {
			c.addf(node, "%q: want true or false", written)
		}
	case t.Kind() == reflect.String && isMapping:
		c.addf(node, `%q: want text: what begins with { has to stand in quotes, "{client.ip}"`, written)
	case t.Kind() == reflect.String:
		if !isScalar {
			c.addf(node, "%q: want text", written)
		} else if !isBlock {
			return stringAt(node, written)
		}
	default:
		if _, err := strconv.ParseInt(written, 10, t.Bits()); !isInteger || err != nil || !wholeNumber.MatchString(written) {
			c.addf(node, "%q: want a whole number", written)
		}
	}
	return node
}

// stringAt returns a string in the place of a node.
func stringAt(node ast.Node, value string) ast.Node {
	t := *node.GetToken()
	t.Value = value
	return ast.String(&t)
}
