package params

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
)

// DecodeJSON decodes the JSON body into v, a non-nil pointer, as encoding/json
// does, but refuses what the package documentation lists, and an empty body.
// As encoding/json matches the fields of a struct without regard to letter case,
// two names that mean one field are refused as well. A member that has no field is
// ignored, unless Options.DisallowUnknownFields. A slice is always a new one, and
// the tags required and default do what they do in [Bind].
//
// The error is an [*Error] for what the client did wrong, its Name and Pointer the
// path of the field, or [Errors] for several; after one, v may be partly filled.
// Decoding again is allowed. Structs, slices, pointers and plain values are checked and
// decoded in one pass; maps, arrays, interfaces and structs with the tag option string
// are checked first and then left to encoding/json.
func (p *Params) DecodeJSON(v any) error {
	b, err := p.body(jsonKind)
	if err != nil {
		return err
	}
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return fmt.Errorf("params: %w", &json.InvalidUnmarshalError{Type: reflect.TypeOf(v)})
	}
	c, err := codecOf(to.Type().Elem())
	if err != nil {
		return err
	}
	r, err := p.request()
	if err != nil {
		return err
	}
	ok, err := decodeDocument(b.raw, p.budgets.of(r), c, to.Elem())
	if err == nil && !ok {
		return &Error{Source: SourceJSON, Reason: ErrMissing, Detail: "is empty, expected is a JSON value"}
	}
	return err
}

// JSON is From and [Params.DecodeJSON] into a new T, and Options.Validate on it. T is
// its zero value after an error.
func JSON[T any](ctx context.Context) (T, error) {
	var zero T
	p, err := From(ctx)
	if err != nil {
		return zero, err
	}
	v := new(T)
	if err := p.DecodeJSON(v); err != nil {
		return zero, err
	}
	if err := p.validate(ctx, v); err != nil {
		return zero, err
	}
	return *v, nil
}
