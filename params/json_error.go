package params

import (
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

// jsonError is a mistake at a place in a JSON body.
func jsonError(reason error, at jsontext.Pointer, detail string) *Error {
	e := &Error{Source: SourceJSON, Reason: reason, Detail: detail}
	var names []string
	var clipped jsontext.Pointer
	for name := range at.Tokens() {
		names = append(names, clip(name))
		clipped = clipped.AppendToken(clip(name))
	}
	if names != nil {
		e.Name = strings.Join(names, ".")
		e.pointer = "#" + (&url.URL{Fragment: string(clipped)}).EscapedFragment()
	}
	return e
}

// textError is a mistake in the text of a JSON body, by package json's error.
func textError(err error) error {
	var e *jsontext.SyntacticError
	switch {
	case !errors.As(err, &e):
		return err
	case errors.Is(e, jsontext.ErrDuplicateName):
		return jsonError(ErrMalformed, e.JSONPointer, "is given twice")
	case errors.Is(e, io.ErrUnexpectedEOF):
		return jsonError(ErrMalformed, "", fmt.Sprintf("is JSON that ends too early, at byte %d", e.ByteOffset))
	}
	return jsonError(ErrMalformed, "", fmt.Sprintf("is not valid JSON, %v, at byte %d", e.Err, e.ByteOffset))
}

// valueError is a mistake about a value, by package json's error.
func valueError(err *json.SemanticError, at jsontext.Pointer) *Error {
	e := jsonError(ErrMalformed, at, "has a value that can't be decoded")
	e.cause = err.Err
	switch {
	case errors.Is(err.Err, json.ErrUnknownName):
		e.Detail = "is unknown"
	case err.GoType == nil, decodesItself(err.GoType):
	case err.Err == nil:
		e.Detail = wantOf(err.GoType) + butIs(err.JSONKind)
	case errors.Is(err.Err, strconv.ErrRange):
		e.Detail = "is out of range"
	default:
		e.Detail = wantOf(err.GoType)
	}
	return e
}

// wantOf says what JSON a type wants.
func wantOf(t reflect.Type) string {
	switch k := t.Kind(); {
	case t == timeType:
		return wantTime
	case reflect.Int <= k && k <= reflect.Int64:
		return "must be a whole number"
	case reflect.Uint <= k && k <= reflect.Uintptr:
		return "must be a whole number, not negative"
	case k == reflect.Float32 || k == reflect.Float64:
		return "must be a number"
	case k == reflect.String:
		return "must be a string"
	case k == reflect.Bool:
		return "must be true or false"
	case (k == reflect.Slice || k == reflect.Array) && t.Elem().Kind() == reflect.Uint8:
		return "must be bytes in base64"
	case k == reflect.Array:
		return fmt.Sprintf("must be an array of %d", t.Len())
	case k == reflect.Slice:
		return "must be an array"
	case k == reflect.Struct || k == reflect.Map:
		return "must be an object"
	}
	return "has the wrong type"
}

var jsonTypes = map[jsontext.Kind]string{
	'"': "a string", '0': "a number", 't': "a boolean", 'f': "a boolean", 'n': "null", '{': "an object", '[': "an array",
}

func butIs(k jsontext.Kind) string { return ", not " + jsonTypes[k] }
