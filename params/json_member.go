package params

import (
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// membersOf returns the members of the object that is a JSON text. An empty text has none.
func membersOf(data []byte, o *Options) (members map[string]jsontext.Value, err error) {
	if isBlank(data) {
		return nil, nil
	}
	if err := checkJSON(data, o); err != nil {
		return nil, err
	}
	if err = json.Unmarshal(data, &members); err == nil && members == nil {
		err = nullFor[map[string]any]("")
	}
	if err != nil {
		return nil, jsonFault(err, "") // what was decoded before the mistake is no use
	}
	return members, nil
}

// memberOf decodes a member of the object. null is no value of any type.
func memberOf[T any](raw jsontext.Value, name string) (t T, err error) {
	if err = json.Unmarshal(raw, &t); raw.Kind() == 'n' {
		err = nullFor[T]("")
	}
	if err != nil {
		var zero T
		return zero, jsonFault(err, jsontext.Pointer("").AppendToken(name))
	}
	return t, nil
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
			at := jsontext.Pointer("").AppendToken(strconv.Itoa(i))
			return nil, jsonFault(nullFor[string](at), jsontext.Pointer("").AppendToken(name))
		}
		all[i] = *text
	}
	return all, nil
}

// nullFor is the error of package json about a null where a T is wanted.
func nullFor[T any](at jsontext.Pointer) error {
	return &json.SemanticError{GoType: reflect.TypeFor[T](), JSONKind: 'n', JSONPointer: at}
}
