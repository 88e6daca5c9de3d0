package proxy

import (
	"encoding"
	"errors"

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
