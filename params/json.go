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
// member without a field is ignored, unless Options.DisallowUnknownFields is set. A
// [time.Duration] is a number of nanoseconds. The tags required and default do what they
// do in [Bind], but not in the elements of a map or an array.
//
// What v holds already stays where the body has nothing for it, except for defaults; the
// array of a slice in it is written into.
//
// It returns an [*Error] for a mistake of the client, its Name and Pointer the path of
// the field, or [Errors] for several; v may then be partly filled. Of the mistakes within
// one map, array, interface or value with a method of its own the first is reported. A
// type that can't be decoded into is another error. Decoding again is allowed.
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
	return decodeJSON(b.raw, p.budgets.of(r), plan, to.Elem())
}

// isBlank reports whether a JSON text is empty, except for space.
func isBlank(data []byte) bool { return len(bytes.TrimLeft(data, " \t\r\n")) == 0 }

// JSON decodes the JSON body of ctx's request into a new T, as [Params.DecodeJSON] does,
// and asks Options.Validate. T is its zero value after an error.
func JSON[T any](ctx context.Context) (T, error) {
	return fill(ctx, func(p *Params, v *T) error { return p.DecodeJSON(v) })
}

// fill makes a T, fills it from the parameters of ctx's request, and has it validated.
func fill[T any](ctx context.Context, from func(*Params, *T) error, validate ...func(*T) error) (T, error) {
	var zero T
	p, err := From(ctx)
	if err != nil {
		return zero, err
	}
	v := new(T)
	if err := from(p, v); err != nil {
		return zero, err
	}
	if check := p.options().Validate; check != nil {
		if err := blame(check(ctx, v)); err != nil {
			return zero, err
		}
	}
	for _, check := range validate {
		if err := blame(check(v)); err != nil {
			return zero, err
		}
	}
	return *v, nil
}
