package params

import (
	"cmp"
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

var (
	timeType      = reflect.TypeFor[time.Time]()
	durationType  = reflect.TypeFor[time.Duration]()
	numberType    = reflect.TypeFor[stdjson.Number]()
	unmarshalText = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshalJSON = reflect.TypeFor[json.Unmarshaler]()
	unmarshalFrom = reflect.TypeFor[json.UnmarshalerFrom]()
)

var (
	durationsAsNumbers = jsonv1.FormatDurationAsNano(true)

	// numbersAsTexts decodes a Number of encoding/json from a number. Package json would decode it from a string.
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

// compileJSON compiles a type that is decoded from JSON. A plan without elem and fields is decoded as a whole.
func (c compiler) compileJSON(p *plan) (err error) {
	inner, isOpt := optInnerType(p.typ)
	switch k := p.typ.Kind(); {
	case isOpt:
		p.elem, err = c.planFor(inner)
	case p.typ == timeType, decodesItself(p.typ):
	case k == reflect.Pointer, k == reflect.Slice && p.typ.Elem().Kind() != reflect.Uint8: // bytes are base64
		p.elem, err = c.planFor(p.typ.Elem())
	case k == reflect.Array, k == reflect.Map:
		p.whole = true
		if k == reflect.Map {
			err = c.compileKey(p.typ.Key())
		}
		if err == nil {
			p.elem, err = c.planFor(p.typ.Elem())
		}
	case k == reflect.Struct:
		err = c.compileStruct(p)
	case k == reflect.Interface && p.typ.NumMethod() > 0, k == reflect.Chan, k == reflect.Func,
		k == reflect.Complex64, k == reflect.Complex128, k == reflect.UnsafePointer:
		err = fmt.Errorf("JSON cannot become a %v", p.typ)
	}
	return err
}

// compileKey returns an error if the name of a member cannot become a key of type t.
func (c compiler) compileKey(t reflect.Type) error {
	_, err := c.planFor(t)
	switch k := t.Kind(); {
	case err != nil, t == timeType, decodesItself(t):
		return err
	case k == reflect.Bool, k == reflect.Struct, k == reflect.Array && t.Elem().Kind() != reflect.Uint8:
		return fmt.Errorf("the name of a JSON member cannot become a %v", t)
	}
	return nil
}

// decodesItself reports whether a type has a method that decodes it.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t != timeType && (p.Implements(unmarshalJSON) || p.Implements(unmarshalFrom) || p.Implements(unmarshalText))
}

// compileStruct compiles the fields of a struct. The struct is decoded as a whole if only package json knows which
// field a member belongs to.
func (c compiler) compileStruct(p *plan) error {
	var mistake *json.SemanticError
	if errors.As(json.Unmarshal([]byte("{}"), reflect.New(p.typ).Interface()), &mistake) {
		return mistake.Err // a malformed tag, or two fields with the same name
	}
	return forEachField(p.typ, nil, func(sf reflect.StructField, index []int) (isGroup bool, err error) {
		tag := sf.Tag.Get("json")
		switch name, _, _ := strings.Cut(tag, ","); {
		case tag == "-", !sf.IsExported() && !sf.Anonymous:
			return false, nil
		case sf.Tag.Get("params") == "-": // package json would fill it
			return false, errors.New(`has params:"-", but in JSON it needs json:"-"`)
		case sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct: // its fields are members of the outer object
			return true, nil
		}
		f, err := c.compileField(sf, tag, index)
		isSame := func(g field) bool { return g.name == f.name } // in an embedded struct
		p.whole = p.whole || sf.Anonymous || !isPlain(tag) || slices.ContainsFunc(p.fields, isSame)
		p.fields = append(p.fields, f)
		return false, err
	})
}

// isPlain reports whether a tag has a name without quotes, and no options that change how the value is found.
func isPlain(tag string) bool {
	name, options, _ := strings.Cut(tag, ",")
	for option := range strings.SplitSeq(options, ",") {
		if !slices.Contains([]string{"", "omitempty", "omitzero", "string"}, option) {
			return false
		}
	}
	return !strings.ContainsAny(name, "\\\"'`")
}

// compileMember returns the name and the plan of a field. The plan is another one if the tag option string says that the
// number is in a string.
func (c compiler) compileMember(sf reflect.StructField, tag string) (string, *plan, error) {
	name, options, _ := strings.Cut(tag, ",")
	p, err := c.planFor(sf.Type)
	if err == nil && slices.Contains(strings.Split(options, ","), "string") {
		p = &plan{typ: sf.Type, isText: true}
		if !isJSONNumber(sf.Type) {
			err = errors.New("the tag option string is only for numbers")
		}
	}
	return cmp.Or(name, sf.Name), p, err
}

// isJSONNumber reports whether a type, or the type that it points to, is decoded from a JSON number or by a method of
// its own.
func isJSONNumber(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return reflect.Int <= t.Kind() && t.Kind() <= reflect.Float64 || t == numberType || decodesItself(t)
}

// finish completes the plans. It returns the options to decode JSON with, or an error if a field has demands in a type
// that is decoded as a whole.
func (c compiler) finish() (options []json.Options, err error) {
	for t, p := range c.plans {
		p.demands = p.hasDemands(map[*plan]bool{})
		if p.demands && p.whole {
			return nil, fmt.Errorf("a %v can't have required fields, defaults or checks in its elements, nor beside fields "+
				"that are embedded by pointer, have the same name or have tag options", t)
		}
	}
	if c.plans[durationType] != nil {
		options = append(options, durationsAsNumbers)
	}
	if c.plans[numberType] != nil {
		options = append(options, numbersAsTexts)
	}
	return options, nil
}

// hasDemands reports whether a field in p has demands. It does not look at the plans in seen.
func (p *plan) hasDemands(seen map[*plan]bool) bool {
	if p == nil || seen[p] {
		return false
	}
	seen[p] = true
	return p.elem.hasDemands(seen) || slices.ContainsFunc(p.fields, func(f field) bool {
		return f.demands.any() || f.plan.hasDemands(seen)
	})
}
