package params

import (
	"errors"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// membersOf returns the members of the object that is a JSON text. One that is empty,
// but for space, has none.
func membersOf(data []byte, o *Options) (map[string]jsontext.Value, error) {
	if isBlank(data) {
		return nil, nil
	}
	if err := checkJSON(data, o); err != nil {
		return nil, err
	}
	var members map[string]jsontext.Value
	var mismatch *json.SemanticError
	switch err := json.Unmarshal(data, &members); {
	case errors.As(err, &mismatch):
		return nil, jsonError(ErrMalformed, "", "must be a JSON object"+butIs(mismatch.JSONKind))
	case err != nil:
		return nil, textError(err)
	case members == nil:
		return nil, jsonError(ErrMalformed, "", "must be a JSON object"+butIs('n'))
	}
	return members, nil
}

// memberOf decodes a member of the object. null is no value of any type.
func memberOf[T any](raw jsontext.Value, name string) (t T, err error) {
	var mismatch *json.SemanticError
	switch err := json.Unmarshal(raw, &t); {
	case raw.Kind() == 'n':
		mismatch = &json.SemanticError{GoType: reflect.TypeFor[T](), JSONKind: 'n'}
	case !errors.As(err, &mismatch):
		return t, err
	}
	var zero T
	return zero, valueError(mismatch, jsontext.Pointer("").AppendToken(name)+mismatch.JSONPointer)
}

// memberStrings decodes a member that is an array of strings.
func memberStrings(raw jsontext.Value, name string) ([]string, error) {
	texts, err := memberOf[[]*string](raw, name)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(texts))
	for i, text := range texts {
		if text == nil {
			at := jsontext.Pointer("").AppendToken(name).AppendToken(strconv.Itoa(i))
			return nil, jsonError(ErrMalformed, at, "must be a string, not null")
		}
		all[i] = *text
	}
	return all, nil
}
