package params

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// DecodeJSON decodes the JSON body into v, a non-nil pointer, as encoding/json
// does, but refuses what the package documentation lists, and an empty body.
// As encoding/json matches the fields of a struct without regard to letter case,
// for a destination of structs two names of an object that differ in case only
// are refused as well. A member that has no field is ignored, unless
// Options.DisallowUnknownFields.
//
// The error is an [*Error] for what the client did wrong, its Name the path of
// the field; after one, v may be partly filled. Decoding again is allowed.
func (p *Params) DecodeJSON(v any) error {
	b, err := p.body(jsonKind)
	switch {
	case err != nil:
		return err
	case b.parseErr != nil:
		return b.parseErr
	case len(b.doc.data) == 0:
		return &Error{Source: SourceJSON, Reason: ErrMissing, Detail: "is empty, expected is a JSON value"}
	case b.doc.similar != nil && decodesStructs(reflect.TypeOf(v)):
		name := clip(string(b.doc.similar))
		return malformed(SourceJSON, name, "is given twice, in different letter case")
	}
	if !p.options.DisallowUnknownFields {
		return decodeError(json.Unmarshal(b.doc.data, v))
	}
	d := json.NewDecoder(bytes.NewReader(b.doc.data))
	d.DisallowUnknownFields()
	return decodeError(d.Decode(v))
}

// decodesStructs reports whether t may have fields that names are matched with.
// Types without end, such as a slice of itself, are taken to have some.
func decodesStructs(t reflect.Type) bool {
	for range 16 {
		if t == nil {
			return false
		}
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		case reflect.Struct:
			return true
		default:
			return false
		}
	}
	return true
}

// decodeError makes the client's mistakes an Error and leaves the program's.
func decodeError(err error) error {
	if err == nil {
		return nil
	}
	var mismatch *json.UnmarshalTypeError
	var misuse *json.InvalidUnmarshalError
	switch {
	case errors.As(err, &misuse):
		return fmt.Errorf("params: %w", err)
	case errors.As(err, &mismatch):
		e := malformed(SourceJSON, mismatch.Field, mismatchDetail(mismatch))
		e.cause = err
		return e
	}
	// encoding/json has no type for this one.
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if name, uerr := strconv.Unquote(quoted); uerr == nil {
			return malformed(SourceJSON, clip(name), "is unknown")
		}
	}
	e := malformed(SourceJSON, "", "has a value that can't be decoded")
	e.cause = err
	return e
}

// mismatchDetail says which JSON type a Go type wants.
func mismatchDetail(m *json.UnmarshalTypeError) string {
	if m.Type == nil {
		return "has the wrong type"
	}
	isNumber := strings.HasPrefix(m.Value, "number")
	switch k := m.Type.Kind(); {
	case k >= reflect.Int && k <= reflect.Uintptr:
		if isNumber {
			return "must be a whole number in range"
		}
		return "must be a whole number"
	case isNumber && (k == reflect.Float32 || k == reflect.Float64 || k == reflect.Interface):
		return "is out of range"
	case k == reflect.Float32 || k == reflect.Float64:
		return "must be a number"
	case k == reflect.String:
		return "must be a string"
	case k == reflect.Bool:
		return "must be true or false"
	case k == reflect.Slice || k == reflect.Array:
		return "must be an array"
	case k == reflect.Struct || k == reflect.Map:
		return "must be an object"
	}
	return "has the wrong type"
}
