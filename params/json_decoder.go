package params

import (
	stdjson "encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// jsonOptions decode what package json doesn't know, or not as we do: an Opt, durations as
// nanoseconds, and numbers of encoding/json.
var jsonOptions = json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(func(dec *jsontext.Decoder, o optional) error {
		if dec.PeekKind() == 'n' {
			o.setNull()
			return dec.SkipValue()
		}
		return json.UnmarshalDecode(dec, o.slot())
	}),
	json.UnmarshalFromFunc(func(dec *jsontext.Decoder, d *time.Duration) error {
		return json.UnmarshalDecode(dec, (*int64)(d))
	}),
	json.UnmarshalFromFunc(func(dec *jsontext.Decoder, n *stdjson.Number) error {
		token, err := dec.ReadToken()
		switch {
		case err != nil:
			return err
		case token.Kind() == '0':
			*n = stdjson.Number(token.String())
		case token.Kind() == 'n':
			*n = ""
		default:
			return &json.SemanticError{JSONKind: token.Kind(), GoType: reflect.TypeFor[float64]()}
		}
		return nil
	}),
))

// decodeJSON reads a JSON text into v as p says: if it may at once by package json, and if
// not, or for all mistakes, member by member.
func decodeJSON(data []byte, o *Options, p *jsonPlan, v reflect.Value, whole bool) error {
	if err := checkJSON(data, o); err != nil {
		return err
	}
	strict := json.RejectUnknownMembers(o.DisallowUnknownFields)
	if whole && json.Unmarshal(data, v.Addr().Interface(), strict) == nil {
		return nil
	}
	d := &jsonDecoder{plan: p, to: v, options: o}
	if err := json.Unmarshal(data, d, jsonOptions, strict); err != nil {
		return textError(err)
	}
	return d.faults.err()
}

// A jsonDecoder reads a JSON text into a value, member by member. It has package json
// decode what is no struct or list, and collects all mistakes about values. A mistake in
// the text ends it.
type jsonDecoder struct {
	plan    *jsonPlan
	to      reflect.Value
	options *Options
	dec     *jsontext.Decoder
	name    []byte // of a member
	faults  Errors
}

// UnmarshalJSONFrom is called by json.Unmarshal, which checks what is around the value.
func (d *jsonDecoder) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	d.dec = dec
	return d.plan.decode(d, d.plan, d.to)
}

// scalar has package json decode a value that is one token.
func (d *jsonDecoder) scalar(p *jsonPlan, v reflect.Value) error {
	if k := d.dec.PeekKind(); k == '{' || k == '[' {
		return d.mismatch(p)
	}
	if err := json.UnmarshalDecode(d.dec, v.Addr().Interface()); err != nil {
		return d.refuse(err, "")
	}
	return nil
}

// raw has package json decode any value, apart from the others: after an error within,
// dec couldn't go on.
func (d *jsonDecoder) raw(_ *jsonPlan, v reflect.Value) error {
	raw, err := d.dec.ReadValue()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v.Addr().Interface(), d.dec.Options()); err != nil {
		return d.refuse(err, d.dec.StackPointer())
	}
	return nil
}

// refuse notes an error of package json about a value in the one at a place. It returns
// any other error.
func (d *jsonDecoder) refuse(err error, at jsontext.Pointer) error {
	var e *json.SemanticError
	if !errors.As(err, &e) {
		return err
	}
	if !d.faults.full() {
		d.faults.note(valueError(e, at+e.JSONPointer))
	}
	return nil
}

// note notes a mistake about the value that was read last, or one that it leads to.
func (d *jsonDecoder) note(reason error, detail string, way ...string) {
	if d.faults.full() {
		return
	}
	at := d.dec.StackPointer()
	for _, name := range way {
		at = at.AppendToken(name)
	}
	d.faults.note(jsonError(reason, at, detail))
}

// mismatch skips a value of another type than p's.
func (d *jsonDecoder) mismatch(p *jsonPlan) error {
	e := &json.SemanticError{GoType: p.typ, JSONKind: d.dec.PeekKind()}
	if err := d.dec.SkipValue(); err != nil {
		return err
	}
	return d.refuse(e, d.dec.StackPointer())
}

// isNull reads a null, if there is one.
func (d *jsonDecoder) isNull() bool {
	return d.dec.PeekKind() == 'n' && d.dec.SkipValue() == nil
}

func (d *jsonDecoder) opt(p *jsonPlan, v reflect.Value) error {
	o := v.Addr().Interface().(optional)
	if d.isNull() {
		o.setNull()
		return nil
	}
	return p.elem.decode(d, p.elem, reflect.ValueOf(o.slot()).Elem())
}

func (d *jsonDecoder) pointer(p *jsonPlan, v reflect.Value) error {
	if d.isNull() {
		v.SetZero()
		return nil
	}
	if v.IsNil() {
		v.Set(reflect.New(p.elem.typ))
	}
	return p.elem.decode(d, p.elem, v.Elem())
}

// slice reads an array into a new slice: what was in v may be shared.
func (d *jsonDecoder) slice(p *jsonPlan, v reflect.Value) error {
	v.SetZero()
	if d.isNull() {
		return nil
	}
	if d.dec.PeekKind() != '[' {
		return d.mismatch(p)
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(p.typ, 0, 0))
	for i := 0; d.dec.PeekKind() != ']'; i++ {
		if i == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		if err := p.elem.decode(d, p.elem, v.Index(i)); err != nil {
			return err
		}
	}
	_, err := d.dec.ReadToken()
	return err
}

// object reads a struct. One that is null is as if absent.
func (d *jsonDecoder) object(p *jsonPlan, v reflect.Value) error {
	if d.isNull() {
		v.SetZero()
		d.complete(p, v, nil)
		return nil
	}
	if d.dec.PeekKind() != '{' {
		return d.mismatch(p)
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	var few [32]bool
	given := few[:]
	if len(p.fields) > len(few) {
		given = make([]bool, len(p.fields))
	}
	for d.dec.PeekKind() != '}' {
		name, err := d.dec.ReadValue()
		if err != nil {
			return err
		}
		d.name, _ = jsontext.AppendUnquote(d.name[:0], name)
		if i, ok := p.names[string(d.name)]; ok {
			given[i] = true
			err = d.member(&p.fields[i], v)
		} else {
			err = d.unknown()
		}
		if err != nil {
			return err
		}
	}
	_, err := d.dec.ReadToken()
	if err == nil {
		d.complete(p, v, given)
	}
	return err
}

func (d *jsonDecoder) member(f *jsonField, v reflect.Value) error {
	if f.required && d.isNull() {
		d.note(ErrMalformed, "must not be null")
		return nil
	}
	return f.plan.decode(d, f.plan, fieldAt(v, f.index))
}

// unknown skips the value of a member that has no field.
func (d *jsonDecoder) unknown() error {
	if d.options.DisallowUnknownFields {
		d.note(ErrMalformed, "is unknown")
	}
	return d.dec.SkipValue()
}

// complete gives the fields that weren't given their defaults, and misses those that are
// required. way leads from the last value that was read to the struct.
func (d *jsonDecoder) complete(p *jsonPlan, v reflect.Value, given []bool, way ...string) {
	for i := range p.fields {
		f := &p.fields[i]
		switch {
		case !f.demands(), given != nil && given[i]:
		case f.def.IsValid():
			fieldAt(v, f.index).Set(f.def)
		case f.required:
			d.note(ErrMissing, "is missing", append(way, f.name)...)
		default:
			d.complete(f.plan, fieldAt(v, f.index), nil, append(way, f.name)...)
		}
	}
}
