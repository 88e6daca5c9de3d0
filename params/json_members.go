package params

import (
	"errors"

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
