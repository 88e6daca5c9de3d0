package params

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A jsonValue is a value in a JSON text. It refers to the text.
type jsonValue struct {
	raw   jsontext.Value
	names []string    // of the members of an object
	items []jsonValue // the members' values, or the elements of an array
}

// member returns the value of a member of an object, or nil if there is none.
func (v *jsonValue) member(name string) *jsonValue {
	if i := slices.Index(v.names, name); i >= 0 {
		return &v.items[i]
	}
	return nil
}

// A jsonParser finds the values in a JSON text. It reads each byte once, even if the text is deep.
type jsonParser struct {
	text     []byte
	options  *Options // the budget
	elements int      // found so far, with the members of objects
	root     jsonValue
}

// parseJSON returns the value in a JSON text. It returns an [*Error] if the text is not valid or exceeds the budget.
func parseJSON(text []byte, o *Options) (*jsonValue, error) {
	p := &jsonParser{text: text, options: o}
	err := json.Unmarshal(text, p)
	var own *Error
	switch {
	case errors.As(err, &own):
		return nil, own
	case err != nil:
		return nil, jsonClientError(err, "")
	}
	return &p.root, nil
}

// UnmarshalJSONFrom is called by json.Unmarshal, which checks the text before and after the value.
func (p *jsonParser) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return p.parse(dec, &p.root) }

func (p *jsonParser) parse(dec *jsontext.Decoder, v *jsonValue) error {
	k := dec.PeekKind()
	switch {
	case k != '{' && k != '[':
		raw, err := dec.ReadValue()
		end := dec.InputOffset()
		v.raw = p.text[end-int64(len(raw)) : end]
		if err == nil && k == '"' && bytes.Contains(raw, escapedNUL) {
			text, _ := jsontext.AppendUnquote(nil, raw)
			err = jsonTextError(string(text))
		}
		return err
	case dec.StackDepth() == p.options.MaxDepth:
		return jsonTooLargeError("is nested more than %d deep", p.options.MaxDepth)
	}
	_, err := dec.ReadToken()
	start := dec.InputOffset() - 1
	for err == nil && dec.PeekKind() != k+2 { // '{' + 2 is '}', and '[' + 2 is ']'
		if k == '{' {
			err = p.parseName(dec, v)
		}
		if p.elements++; err == nil && p.elements > p.options.MaxElements {
			err = jsonTooLargeError("has more than %d elements", p.options.MaxElements)
		}
		var item jsonValue
		if err == nil {
			err = p.parse(dec, &item)
		}
		v.items = append(v.items, item)
	}
	if err == nil {
		_, err = dec.ReadToken()
	}
	v.raw = p.text[start:dec.InputOffset()]
	return err
}

// parseName reads the name of a member of an object.
func (p *jsonParser) parseName(dec *jsontext.Decoder, object *jsonValue) error {
	if len(object.names) == p.options.MaxParams {
		return jsonTooLargeError("has an object with more than %d members", p.options.MaxParams)
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	name := token.String()
	object.names = append(object.names, name)
	return jsonTextError(name)
}

var escapedNUL = []byte(`\u0000`)

// isSurelyFine reports whether simple counts show that a text is within the budget and has no NUL character.
func isSurelyFine(text []byte, o *Options) bool {
	opened := bytes.Count(text, []byte{'{'}) + bytes.Count(text, []byte{'['})
	elements := opened + bytes.Count(text, []byte{','}) // there may be fewer
	return opened <= o.MaxDepth && elements <= min(o.MaxElements, o.MaxParams) && !bytes.Contains(text, escapedNUL)
}

func jsonTextError(text string) error {
	if strings.Contains(text, "\x00") {
		return newError(ErrMalformed, SourceJSON, "", "has a NUL character")
	}
	return nil
}

func jsonTooLargeError(detail string, limit int) *Error {
	return newError(ErrTooLarge, SourceJSON, "", fmt.Sprintf(detail, limit))
}

// decode decodes a JSON text. If p has no demands, package json does this alone, unless it finds a mistake. Otherwise, the
// values are set one by one, to find all mistakes.
func (b *binder) decode(p *plan, text jsontext.Value, v reflect.Value) {
	var from *jsonValue
	var err error
	if !isSurelyFine(text, b.options) {
		from, err = parseJSON(text, b.options)
	}
	if err == nil && !p.demands && b.unmarshal(text, v) == nil {
		return
	}
	if err == nil && from == nil {
		from, err = parseJSON(text, b.options)
	}
	if err != nil {
		_ = b.faults.add(err)
		return
	}
	b.setJSON(p, v, from, nil)
}

// setJSON sets a value to a JSON value.
func (b *binder) setJSON(p *plan, v reflect.Value, from *jsonValue, at *path) {
	k, isList := from.raw.Kind(), v.Kind() == reflect.Slice
	switch {
	case !p.whole && p.fields != nil && (k == '{' || k == 'n'):
		if k == 'n' {
			v.SetZero()
		}
		b.fillFields(p.fields, v, values{from: SourceJSON, object: from}, at, 0)
	case !p.whole && isList && p.elem != nil && k == '[':
		v.Set(reflect.MakeSlice(v.Type(), len(from.items), len(from.items)))
		for i := 0; i < len(from.items) && !b.faults.full(); i++ {
			b.setJSON(p.elem, v.Index(i), &from.items[i], &path{at, strconv.Itoa(i)})
		}
	case !p.whole && !isList && p.elem != nil && k != 'n':
		b.setJSON(p.elem, pointee(v), from, at)
	default:
		if err := b.unmarshal(from.raw, v); err != nil && !b.faults.full() {
			b.faults.note(jsonClientError(err, at.pointer()))
		}
	}
}

// unmarshal has package json decode a value.
func (b *binder) unmarshal(raw jsontext.Value, v reflect.Value) error {
	return json.Unmarshal(raw, v.Addr().Interface(), durationsAsNumbers, json.RejectUnknownMembers(b.options.DisallowUnknownFields))
}
