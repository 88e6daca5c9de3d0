package proxy

import (
	"encoding"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
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

// located says where a duration is that could not be read: of all that can be wrong, the
// package for YAML doesn't tell it of this. Such an error ends with the text that was read.
func located(file *ast.File, err error) error {
	if !strings.HasPrefix(err.Error(), "time: ") {
		return err
	}
	f := &finder{message: err.Error()}
	for _, doc := range file.Docs {
		ast.Walk(f, doc)
	}
	if f.at == nil {
		return err
	}
	return &yaml.SyntaxError{Message: err.Error(), Token: f.at}
}

// plainType says of a value that is of the wrong kind what is wanted, in terms of YAML
// instead of Go.
func plainType(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	want := ""
	switch {
	case wrong.DstType == reflect.TypeFor[time.Duration]():
		want = "want a time with its unit, such as 50ms"
	case wrong.DstType.Kind() == reflect.Bool:
		want = "want true or false"
	case wrong.DstType.Kind() == reflect.String && wrong.SrcType.Kind() == reflect.Map:
		want = `want text: what begins with { has to stand in quotes, "{client.ip}"`
	case wrong.DstType.Kind() == reflect.String:
		want = "want text"
	case wrong.DstType.Kind() == reflect.Int, wrong.DstType.Kind() == reflect.Int64:
		want = "want a whole number"
	default:
		return err
	}
	return &yaml.SyntaxError{Message: strconv.Quote(wrong.Token.Value) + ": " + want, Token: wrong.Token}
}

// finder looks for the value that a message ends with.
type finder struct {
	message string
	at      *token.Token
}

// Visit is for ast.Walk.
func (f *finder) Visit(n ast.Node) ast.Visitor {
	if _, ok := n.(ast.ScalarNode); ok && f.at == nil && strings.HasSuffix(f.message, strconv.Quote(n.GetToken().Value)) {
		f.at = n.GetToken()
	}
	return f
}
