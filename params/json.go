package params

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeJSON decodes the JSON body into v, a non-nil pointer, with package github.com/go-json-experiment/json, which is
// encoding/json/v2 of Go 1.27: names match in their exact letter case, null makes a field zero, and an array must have
// the length of the array in Go. A [time.Duration] is a number of nanoseconds. DecodeJSON refuses an empty body, and
// what the package documentation lists. It ignores members without a field, unless Options.DisallowUnknownFields is
// set. The tags required, default, min, max, len and oneof work as in [Bind], but not in the elements of a map or an
// array, and not in the fields of a type that decodes itself (UnmarshalJSON, UnmarshalText).
//
// A value in v stays if the body has nothing for it and its field has no default. The array of a slice in v may be
// written into.
//
// DecodeJSON returns an [*Error] for a mistake of the client, with the path of the field in Name and Pointer, or
// [Errors] for several mistakes. v may then be partly filled. Of the mistakes in a map, an array, an interface or a type
// that decodes itself, it reports the first. If the type of v has a mistake, it returns another error. A body can be
// decoded several times.
func (p *Params) DecodeJSON(v any) error {
	body, err := p.body(jsonKind)
	if err != nil {
		return err
	}
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return fmt.Errorf("params: JSON cannot be decoded into a %T, only into a pointer that is not nil", v)
	}
	root, err := rootOf(use{to.Type().Elem(), false})
	if err != nil {
		return err
	}
	if isBlank(body.raw) {
		return newError(ErrMissing, SourceJSON, "", "is empty, but must be a JSON value")
	}
	b := binder{params: p, options: p.options()}
	b.decode(root.json, body.raw, to.Elem())
	return b.faults.asError()
}

// isBlank reports whether a JSON text contains only space.
func isBlank(data []byte) bool { return len(bytes.Trim(data, " \t\r\n")) == 0 }

// JSON decodes the JSON body of ctx's request into a new T as [Params.DecodeJSON] does, and calls Options.Validate. After
// an error, it returns the zero value of T.
func JSON[T any](ctx context.Context) (T, error) {
	return bindBy(ctx, func(p *Params, v *T) error { return p.DecodeJSON(v) })
}

// bindBy makes a T, fills it from the parameters of ctx's request, and validates it.
func bindBy[T any](ctx context.Context, fill func(*Params, *T) error, validate ...func(*T) error) (T, error) {
	var zero T
	p, err := From(ctx)
	if err != nil {
		return zero, err
	}
	v := new(T)
	if err := fill(p, v); err != nil {
		return zero, err
	}
	if check := p.options().Validate; check != nil {
		validate = append([]func(*T) error{func(v *T) error { return check(ctx, v) }}, validate...)
	}
	for _, check := range validate {
		var mistakes Errors
		err := mistakes.add(check(v))
		if err = cmp.Or(err, mistakes.asError()); err != nil {
			return zero, err
		}
	}
	return *v, nil
}

// jsonObject returns the JSON object in the body. An empty body has no members.
func (p *Params) jsonObject(want kinds) (*jsonValue, error) {
	b, err := p.body(want)
	if err != nil {
		return nil, err
	}
	b.parseJSON.Do(func() { b.json, b.jsonErr = parseJSONObject(b.raw, p.options()) })
	return b.json, b.jsonErr
}

func parseJSONObject(text []byte, o *Options) (*jsonValue, error) {
	if isBlank(text) {
		return &jsonValue{}, nil
	}
	v, err := parseJSON(text, o)
	if err == nil && v.raw.Kind() != '{' {
		err = jsonClientError(&json.SemanticError{GoType: reflect.TypeFor[map[string]any](), JSONKind: v.raw.Kind()}, "")
	}
	return v, err
}

// decodeJSONMember decodes the value at a place in the body. null is malformed for every type.
func decodeJSONMember[T any](raw jsontext.Value, at jsontext.Pointer) (t T, err error) {
	if err = json.Unmarshal(raw, &t); err == nil && raw.Kind() == 'n' {
		err = &json.SemanticError{GoType: reflect.TypeFor[T](), JSONKind: 'n'}
	}
	if err != nil {
		var zero T
		return zero, jsonClientError(err, at)
	}
	return t, nil
}

// decodeJSONStrings decodes a member that is an array of strings.
func decodeJSONStrings(v *jsonValue, name string) (all []string, err error) {
	at := jsontext.Pointer("").AppendToken(name)
	if v.raw.Kind() != '[' {
		return decodeJSONMember[[]string](v.raw, at)
	}
	all = make([]string, len(v.items))
	for i, item := range v.items {
		if all[i], err = decodeJSONMember[string](item.raw, at.AppendToken(strconv.Itoa(i))); err != nil {
			return nil, err
		}
	}
	return all, nil
}
