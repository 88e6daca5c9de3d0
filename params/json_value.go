package params

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A jsonValue is a value in a JSON text. It refers to the text.
type jsonValue struct {
	raw   jsontext.Value
	names []string    // of the members of an object
	items []jsonValue // the values of the members, or the elements of an array
}

// member returns the value of a member of an object, or nil if there is none.
func (v *jsonValue) member(name string) *jsonValue {
	if i := slices.Index(v.names, name); i >= 0 {
		return &v.items[i]
	}
	return nil
}

// A jsonParser finds the values in a JSON text, so that each byte is read once however deep it is.
type jsonParser struct {
	text []byte
	root jsonValue
}

// parseJSON returns the value in a JSON text. The error is that of package json.
func parseJSON(text []byte) (*jsonValue, error) {
	p := &jsonParser{text: text}
	err := json.Unmarshal(text, p)
	return &p.root, err
}

// UnmarshalJSONFrom is called by json.Unmarshal, which checks the text before and after the value.
func (p *jsonParser) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return p.parse(dec, &p.root) }

func (p *jsonParser) parse(dec *jsontext.Decoder, v *jsonValue) error {
	k := dec.PeekKind()
	if k != '{' && k != '[' {
		raw, err := dec.ReadValue()
		end := dec.InputOffset()
		v.raw = p.text[end-int64(len(raw)) : end]
		return err
	}
	_, err := dec.ReadToken()
	start := dec.InputOffset() - 1
	for err == nil && dec.PeekKind() != k+2 { // '{' + 2 is '}', and '[' + 2 is ']'
		if k == '{' {
			var name jsontext.Token
			name, err = dec.ReadToken()
			v.names = append(v.names, name.String())
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

// decode decodes a JSON text. Usually, package json does this alone.
func (b *binder) decode(p *plan, text jsontext.Value, v reflect.Value) {
	if err := checkJSON(text, b.options); err != nil {
		_ = b.faults.add(err)
		return
	}
	if !p.demands && b.unmarshal(p, text, v) == nil {
		return
	}
	from, err := parseJSON(text)
	if err != nil {
		b.faults.note(jsonClientError(err, ""))
		return
	}
	b.setJSON(p, v, from, nil)
}

// setJSON sets a value to a JSON value. Package json does this alone if the type has no demands. If it fails, or if the
// type has demands, the values in an object or an array are set one by one, to find all mistakes.
func (b *binder) setJSON(p *plan, v reflect.Value, from *jsonValue, at *path) {
	k, isList := from.raw.Kind(), v.Kind() == reflect.Slice
	isObject := p.fields != nil && (k == 'n' || k == '{')
	isOuter := p.elem != nil && k != 'n' && (!isList || k == '[')
	isLeaf := p.whole || !isObject && !isOuter
	var err error
	if isLeaf || !p.demands && !b.hasFailed {
		if err = b.unmarshal(p, from.raw, v); err == nil {
			return
		}
	}
	faults, hasFailed := len(b.faults), b.hasFailed
	b.hasFailed = hasFailed || err != nil
	switch {
	case isLeaf:
	case isObject:
		if k == 'n' {
			v.SetZero()
		}
		b.fillFields(p.fields, v, values{from: SourceJSON, object: from}, at, 0)
	case isList:
		v.Set(reflect.MakeSlice(v.Type(), len(from.items), len(from.items)))
		for i := 0; i < len(from.items) && !b.faults.full(); i++ {
			b.setJSON(p.elem, v.Index(i), &from.items[i], &path{at, strconv.Itoa(i)})
		}
	default:
		b.setJSON(p.elem, pointee(v), from, at)
	}
	b.hasFailed = hasFailed
	if err != nil && len(b.faults) == faults {
		b.faults.note(jsonClientError(err, at.pointer()))
	}
}

// unmarshal has package json decode a value.
func (b *binder) unmarshal(p *plan, raw jsontext.Value, v reflect.Value) error {
	options := b.json
	if p.isText {
		options = append(slices.Clip(options), json.StringifyNumbers(true))
	}
	return json.Unmarshal(raw, v.Addr().Interface(), options...)
}
