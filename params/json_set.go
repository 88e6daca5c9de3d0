package params

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode decodes a JSON text. Usually, package json does this alone.
func (b *binder) decode(p *plan, data jsontext.Value, v reflect.Value) {
	if err := checkJSON(data, b.options); err != nil {
		_ = b.faults.add(err)
		return
	}
	if !p.demands && b.unmarshal(p, data, v) == nil {
		return
	}
	if err := json.Unmarshal(data, new(jsontext.Value)); err != nil { // a mistake in the syntax
		b.faults.note(jsonClientError(err, ""))
		return
	}
	b.setJSON(p, v, data, nil)
}

// setJSON sets a value to a valid JSON value. Package json does this alone if the type has no demands. If it fails, or
// if the type has demands, the values in an object or an array are set one by one, to find all mistakes.
func (b *binder) setJSON(p *plan, v reflect.Value, raw jsontext.Value, at *path) {
	isNull, isList := raw.Kind() == 'n', v.Kind() == reflect.Slice
	isObject := p.fields != nil && (isNull || raw.Kind() == '{')
	isOuter := p.elem != nil && !isNull && (!isList || raw.Kind() == '[')
	isLeaf := p.whole || !isObject && !isOuter
	faults := len(b.faults)
	var err error
	if isLeaf || !p.demands {
		err = b.unmarshal(p, raw, v)
	}
	switch {
	case isLeaf, err == nil && !p.demands:
	case isObject:
		b.setJSONObject(p, v, raw, at)
	case isList:
		_, items := splitJSON(raw)
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			b.setJSON(p.elem, v.Index(i), item, &path{at, strconv.Itoa(i)})
		}
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(p.elem.typ))
		}
		b.setJSON(p.elem, v.Elem(), raw, at)
	default: // an Opt
		b.setJSON(p.elem, reflect.ValueOf(v.Addr().Interface().(optional).prepareSet()).Elem(), raw, at)
	}
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

func (b *binder) setJSONObject(p *plan, v reflect.Value, raw jsontext.Value, at *path) {
	in := values{from: SourceJSON, members: map[string]jsontext.Value{}}
	if raw.Kind() == 'n' {
		v.SetZero()
	} else {
		names, items := splitJSON(raw)
		for i, name := range names {
			in.members[name] = items[i]
		}
	}
	b.fillFields(p.fields, v, in, at, 0)
}
