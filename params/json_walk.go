package params

import (
	stdjson "encoding/json"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

var (
	durationsAsNumbers = jsonv1.FormatDurationAsNano(true)

	// numbersAsTexts decodes numbers of encoding/json, which package json takes for strings.
	numbersAsTexts = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, n *stdjson.Number) error {
		k := dec.PeekKind()
		if k != '0' && k != 'n' {
			return &json.SemanticError{JSONKind: k, GoType: reflect.TypeFor[float64]()}
		}
		raw, err := dec.ReadValue()
		if *n = ""; k == '0' {
			*n = stdjson.Number(raw)
		}
		return err
	}))
)

// decodeJSON decodes a JSON text into v, whose type p is of. If that fails, or if the type
// demands something, a walk through the text finds all mistakes and sets the defaults.
func decodeJSON(data []byte, o *Options, p *jsonPlan, v reflect.Value) error {
	if err := checkJSON(data, o); err != nil {
		return err
	}
	options := p.options
	if o.DisallowUnknownFields {
		options = append(slices.Clip(options), json.RejectUnknownMembers(true))
	}
	err := json.Unmarshal(data, v.Addr().Interface(), options...)
	if err == nil && !p.demands {
		return nil
	}
	w := &jsonWalk{plan: p, v: v, failed: err != nil, strict: o.DisallowUnknownFields}
	if w.failed {
		w.v = reflect.New(p.typ).Elem()
	}
	if walkErr := json.Unmarshal(data, w, options...); walkErr != nil {
		return jsonClientError(walkErr, "")
	}
	if w.faults == nil {
		return jsonClientError(err, "")
	}
	return w.faults.asError()
}

// A jsonWalk goes through a JSON text beside the value that was decoded from it: it sets
// the defaults of what is absent, and notes what is missing. If the decoding has failed, it
// decodes the values one by one, to be thrown away, and notes all mistakes. A mistake
// in the text ends it.
type jsonWalk struct {
	plan   *jsonPlan
	v      reflect.Value
	failed bool
	strict bool // members without a field are mistakes
	dec    *jsontext.Decoder
	name   []byte // of a member
	faults Errors
}

// UnmarshalJSONFrom is called by json.Unmarshal, which checks what is around the value.
func (w *jsonWalk) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	w.dec = dec
	return w.walkValue(w.plan, w.v)
}

func (w *jsonWalk) walkValue(p *jsonPlan, v reflect.Value) error {
	k, elem := w.dec.PeekKind(), p.elem
	switch {
	case p.names != nil && k == 'n':
		err := w.dec.SkipValue()
		w.completeFields(p, v, nil)
		return err
	case p.names != nil && k == '{':
		return w.walkObject(p, v)
	case elem == nil, p.whole, k == 'n':
		return w.decodeLeaf(v)
	case p.typ.Kind() == reflect.Slice && k == '[':
		return w.walkList(elem, v)
	case p.typ.Kind() == reflect.Slice:
		return w.decodeLeaf(v)
	case p.typ.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(elem.typ))
		}
		return w.walkValue(elem, v.Elem())
	}
	return w.walkValue(elem, reflect.ValueOf(v.Addr().Interface().(optional).prepareSet()).Elem())
}

// decodeLeaf passes by a value, or decodes it.
func (w *jsonWalk) decodeLeaf(v reflect.Value) error {
	if !w.failed {
		return w.dec.SkipValue()
	}
	raw, err := w.dec.ReadValue()
	if err != nil {
		return err
	}
	if err = json.Unmarshal(raw, v.Addr().Interface(), w.dec.Options()); err == nil || w.faults.full() {
		return nil
	}
	return w.faults.add(jsonClientError(err, w.dec.StackPointer()))
}

func (w *jsonWalk) walkList(elem *jsonPlan, v reflect.Value) error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	n := 0
	for ; w.dec.PeekKind() != ']'; n++ {
		e := reflect.New(elem.typ).Elem()
		if !w.failed {
			e = v.Index(n)
		}
		if err := w.walkValue(elem, e); err != nil {
			return err
		}
	}
	if w.failed { // for a check of the length
		v.Set(reflect.MakeSlice(v.Type(), n, n))
	}
	_, err := w.dec.ReadToken()
	return err
}

func (w *jsonWalk) walkObject(p *jsonPlan, v reflect.Value) error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	given := make([]bool, len(p.fields))
	for w.dec.PeekKind() != '}' {
		name, err := w.dec.ReadValue()
		if err != nil {
			return err
		}
		w.name, _ = jsontext.AppendUnquote(w.name[:0], name)
		i, ok := p.names[string(w.name)]
		switch {
		case !ok:
			err = w.dec.SkipValue()
			if w.strict {
				w.note(ErrMalformed, "is unknown")
			}
		case p.fields[i].required && w.dec.PeekKind() == 'n':
			given[i] = true
			err = w.dec.SkipValue()
			w.note(ErrMalformed, "must not be null")
		default:
			given[i] = true
			err = w.walkField(&p.fields[i], v)
		}
		if err != nil {
			return err
		}
	}
	_, err := w.dec.ReadToken()
	w.completeFields(p, v, given)
	return err
}

// walkField walks through the value of a field of v, and checks it if there is no mistake in it.
func (w *jsonWalk) walkField(f *jsonField, v reflect.Value) error {
	isNull, faults := w.dec.PeekKind() == 'n', len(w.faults)
	to := fieldAt(v, f.index)
	if err := w.walkValue(f.plan, to); err != nil || isNull || len(w.faults) > faults {
		return err
	}
	if c := f.failedBy(to); c != nil {
		w.note(c.reason, c.detail)
	}
	return nil
}

// completeFields sets the defaults of the fields that weren't given, and notes those that are
// required. path leads from the last value that was read to the struct.
func (w *jsonWalk) completeFields(p *jsonPlan, v reflect.Value, given []bool, path ...string) {
	for i := range p.fields {
		f := &p.fields[i]
		switch {
		case given != nil && given[i]:
		case f.def.IsValid():
			fieldAt(v, f.index).Set(f.def)
		case f.required:
			w.note(ErrMissing, "is missing", append(path, f.name)...)
		case f.plan.names != nil:
			w.completeFields(f.plan, fieldAt(v, f.index), nil, append(path, f.name)...)
		}
	}
}

// note notes a mistake about the value that was read last, or one that path leads to.
func (w *jsonWalk) note(reason error, detail string, path ...string) {
	if w.faults.full() {
		return
	}
	at := w.dec.StackPointer()
	for _, name := range path {
		at = at.AppendToken(name)
	}
	w.faults.note(jsonError(reason, at, detail))
}
