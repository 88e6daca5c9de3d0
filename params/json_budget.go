package params

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// checkJSON checks a JSON text against the budget, and for the NUL characters that
// textFault refuses. What isn't JSON may pass.
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
			return tooLarge("has an object with more than %d members", o.MaxParams)
		case (k == '{' || k == '[') && depth == o.MaxDepth:
			return tooLarge("is nested more than %d deep", depth)
		case !isName && in != '[':
			continue
		}
		if elements++; elements > o.MaxElements {
			return tooLarge("has more than %d elements", o.MaxElements)
		}
	}
}

func tooLarge(detail string, limit int) *Error {
	return jsonError(ErrTooLarge, "", fmt.Sprintf(detail, limit))
}
