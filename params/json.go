package params

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
)

// DecodeJSON decodes the JSON body into v, a non-nil pointer, as package
// github.com/go-json-experiment/json does, which is to be encoding/json/v2: names match
// in their exact letter case, null makes a field zero, and arrays have the length of
// theirs in Go. It refuses what the package documentation lists, and an empty body. A
// member that has no field is ignored, unless Options.DisallowUnknownFields. A
// [time.Duration] is a number of nanoseconds, a slice is always a new one, and the tags
// required and default do what they do in [Bind], but not in the elements of a map or an
// array.
//
// The error is an [*Error] for what the client did wrong, its Name and Pointer the
// path of the field, or [Errors] for several; after one, v may be partly filled. Of
// mistakes within one map, array, interface or value with a method of its own the first
// is told. A type that can't be decoded into is another error. Decoding again is allowed.
func (p *Params) DecodeJSON(v any) error {
	b, err := p.body(jsonKind)
	if err != nil {
		return err
	}
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return fmt.Errorf("params: JSON is decoded into a pointer that isn't nil, not a %T", v)
	}
	plan, err := jsonPlanOf(to.Type().Elem())
	if err != nil {
		return err
	}
	r, err := p.request()
	if err != nil {
		return err
	}
	if isBlank(b.raw) {
		return &Error{Source: SourceJSON, Reason: ErrMissing, Detail: "is empty, expected is a JSON value"}
	}
	fresh := to.Elem().IsZero() // package json would write into slices that are there
	return decodeJSON(b.raw, p.budgets.of(r), plan, to.Elem(), plan.whole && fresh)
}

// isBlank reports whether a JSON text is empty, but for space.
func isBlank(data []byte) bool { return len(bytes.TrimLeft(data, " \t\r\n")) == 0 }

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
