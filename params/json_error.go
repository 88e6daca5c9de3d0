package params

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// placeError returns an error about the parameter at a place in a source.
func placeError(reason error, from Source, at jsontext.Pointer, detail string) *Error {
	e := newError(reason, from, "", detail)
	var names []string
	var clipped jsontext.Pointer
	for name := range at.Tokens() {
		names = append(names, shorten(name))
		clipped = clipped.AppendToken(shorten(name))
	}
	e.Name = strings.Join(names, ".")
	if names != nil && from == SourceJSON {
		e.pointer = "#" + (&url.URL{Fragment: string(clipped)}).EscapedFragment()
	}
	return e
}

// jsonClientError returns the client's mistake for an error of package json about the value at a place.
func jsonClientError(err error, at jsontext.Pointer) *Error {
	var text *jsontext.SyntacticError
	var value *json.SemanticError
	switch {
	case errors.As(err, &value):
		return jsonValueError(value, at+value.JSONPointer)
	case !errors.As(err, &text):
		return jsonValueError(&json.SemanticError{Err: err}, at)
	case errors.Is(text, jsontext.ErrDuplicateName):
		return placeError(ErrMalformed, SourceJSON, at+text.JSONPointer, "is given twice")
	case errors.Is(text, io.ErrUnexpectedEOF):
		return malformedError(SourceJSON, "", fmt.Sprintf("is JSON that ends too early, at byte %d", text.ByteOffset))
	}
	return malformedError(SourceJSON, "", fmt.Sprintf("is not valid JSON, %v, at byte %d", text.Err, text.ByteOffset))
}

func jsonValueError(err *json.SemanticError, at jsontext.Pointer) *Error {
	e := placeError(ErrMalformed, SourceJSON, at, "has a value that can't be decoded")
	e.cause = err.Err
	switch {
	case errors.Is(err.Err, json.ErrUnknownName):
		e.Detail = "is unknown"
	case err.GoType == nil, decodesItself(err.GoType):
	case err.Err == nil:
		e.Detail = expectedJSON(err.GoType) + ", not " + jsonTypes[err.JSONKind]
	case errors.Is(err.Err, strconv.ErrRange):
		e.Detail = outOfRange
	default:
		e.Detail = expectedJSON(err.GoType)
	}
	return e
}

// expectedJSON describes the JSON that a type is decoded from.
func expectedJSON(t reflect.Type) string {
	switch k := t.Kind(); {
	case t == timeType:
		return wantTime
	case reflect.Uint <= k && k <= reflect.Uintptr:
		return "must be a whole number, not negative"
	case (k == reflect.Slice || k == reflect.Array) && t.Elem().Kind() == reflect.Uint8:
		return "must be bytes in base64"
	case k == reflect.Array:
		return fmt.Sprintf("must be an array of %d", t.Len())
	}
	return "must be " + cmp.Or(jsonValues[t.Kind()], "a whole number")
}

// jsonValues describes the JSON that Go types are decoded from, by their kind. The kinds that are not listed are integers.
var jsonValues = map[reflect.Kind]string{
	reflect.Float32: "a number", reflect.Float64: "a number", reflect.String: "a string", reflect.Bool: "true or false",
	reflect.Slice: "an array", reflect.Struct: "an object", reflect.Map: "an object", reflect.Interface: "another value",
}

var jsonTypes = map[jsontext.Kind]string{
	'"': "a string", '0': "a number", 't': "a boolean", 'f': "a boolean", 'n': "null", '{': "an object", '[': "an array",
}
