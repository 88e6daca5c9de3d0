package params

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeJSON decodes the JSON body into v, a non-nil pointer, as package
// github.com/go-json-experiment/json does, which is encoding/json/v2 of Go 1.27: names match
// in their exact letter case, null makes a field zero, and arrays have the length of
// theirs in Go. It refuses what the package documentation lists, and an empty body. A
// member without a field is ignored, unless Options.DisallowUnknownFields is set. A
// [time.Duration] is a number of nanoseconds. The tags required, default, min, max,
// len and oneof do what they do in [Bind], but not in the elements of a map or an array, and not
// in the fields of a type that decodes itself (UnmarshalJSON, UnmarshalText).
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
		return fmt.Errorf("params: JSON cannot be decoded into a %T, only into a pointer that is not nil", v)
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
		return &Error{Source: SourceJSON, Reason: ErrMissing, Detail: "is empty, but must be a JSON value"}
	}
	return decodeJSON(b.raw, p.budgets.forRequest(r), plan, to.Elem())
}

// isBlank reports whether a JSON text is empty, except for space.
func isBlank(data []byte) bool {
	for _, c := range data {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// JSON decodes the JSON body of ctx's request into a new T, as [Params.DecodeJSON] does,
// and asks Options.Validate. T is its zero value after an error.
func JSON[T any](ctx context.Context) (T, error) {
	return bindBy(ctx, func(p *Params, v *T) error { return p.DecodeJSON(v) })
}

// bindBy makes a T, fills it from the parameters of ctx's request, and has it validated.
func bindBy[T any](ctx context.Context, from func(*Params, *T) error, validate ...func(*T) error) (T, error) {
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
		if err := clientErrors(check(ctx, v)); err != nil {
			return zero, err
		}
	}
	for _, check := range validate {
		if err := clientErrors(check(v)); err != nil {
			return zero, err
		}
	}
	return *v, nil
}

// membersOf returns the members of the object that is a JSON text. An empty text has none.
func membersOf(data []byte, o *Options) (members map[string]jsontext.Value, err error) {
	if isBlank(data) {
		return nil, nil
	}
	if err := checkJSON(data, o); err != nil {
		return nil, err
	}
	if err = json.Unmarshal(data, &members); err == nil && members == nil {
		err = nullError[map[string]any]("")
	}
	if err != nil {
		return nil, jsonClientError(err, "") // what was decoded before the mistake is no use
	}
	return members, nil
}

// decodeJSONMember decodes a member of the object. null is no value of any type.
func decodeJSONMember[T any](raw jsontext.Value, name string) (t T, err error) {
	if err = json.Unmarshal(raw, &t); raw.Kind() == 'n' {
		err = nullError[T]("")
	}
	if err != nil {
		var zero T
		return zero, jsonClientError(err, jsontext.Pointer("").AppendToken(name))
	}
	return t, nil
}

// decodeJSONStrings decodes a member that is an array of strings.
func decodeJSONStrings(raw jsontext.Value, name string) ([]string, error) {
	texts, err := decodeJSONMember[[]*string](raw, name)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(texts))
	for i, text := range texts {
		if text == nil {
			at := jsontext.Pointer("").AppendToken(strconv.Itoa(i))
			return nil, jsonClientError(nullError[string](at), jsontext.Pointer("").AppendToken(name))
		}
		all[i] = *text
	}
	return all, nil
}

// nullError is the error of package json about a null where a T is wanted.
func nullError[T any](at jsontext.Pointer) error {
	return &json.SemanticError{GoType: reflect.TypeFor[T](), JSONKind: 'n', JSONPointer: at}
}

// checkJSON checks a JSON text against the budget, and for the NUL characters that
// textProblem refuses. What isn't JSON may pass.
func checkJSON(data []byte, o *Options) error {
	opened := bytes.Count(data, []byte{'{'}) + bytes.Count(data, []byte{'['})
	elements := opened + bytes.Count(data, []byte{','}) // there aren't more
	hasNUL := bytes.Contains(data, []byte(`\u0000`))
	if opened <= o.MaxDepth && elements <= min(o.MaxElements, o.MaxParams) && !hasNUL {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	elements = 0
	for {
		depth := dec.StackDepth()
		in, n := dec.StackIndex(depth)
		token, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		isName := in == '{' && n%2 == 0
		switch k := token.Kind(); {
		case k == '}' || k == ']':
			continue
		case hasNUL && k == '"' && strings.IndexByte(token.String(), 0) >= 0:
			return jsonError(ErrMalformed, "", "has a NUL character")
		case isName && n/2 == int64(o.MaxParams):
			return tooLargeError("has an object with more than %d members", o.MaxParams)
		case (k == '{' || k == '[') && depth == o.MaxDepth:
			return tooLargeError("is nested more than %d deep", depth)
		case !isName && in != '[':
			continue
		}
		if elements++; elements > o.MaxElements {
			return tooLargeError("has more than %d elements", o.MaxElements)
		}
	}
}

func tooLargeError(detail string, limit int) *Error {
	return jsonError(ErrTooLarge, "", fmt.Sprintf(detail, limit))
}
