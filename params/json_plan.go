package params

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// durationsAsNumbers is an option of package json, which has no default for durations.
var durationsAsNumbers = jsonv1.FormatDurationAsNano(true)

var (
	timeType      = reflect.TypeFor[time.Time]()
	durationType  = reflect.TypeFor[time.Duration]()
	numberType    = reflect.TypeFor[stdjson.Number]()
	unmarshalText = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshalJSON = reflect.TypeFor[json.Unmarshaler]()
	unmarshalFrom = reflect.TypeFor[json.UnmarshalerFrom]()
)

// compileJSON compiles a type that is decoded from JSON. A plan without elem and fields is decoded as a whole.
func (c compiler) compileJSON(p *plan) (err error) {
	inner, isOpt := optInnerType(p.typ)
	switch k := p.typ.Kind(); {
	case isOpt:
		p.elem, err = c.planFor(inner)
	case p.typ == timeType, decodesItself(p.typ) && p.typ != numberType: // json.Number has a method for this since Go 1.27
	case k == reflect.Pointer, k == reflect.Slice && p.typ.Elem().Kind() != reflect.Uint8: // bytes are base64
		p.elem, err = c.planFor(p.typ.Elem())
	case k == reflect.Array, k == reflect.Map:
		p.whole = true
		if p.elem, err = c.planFor(p.typ.Elem()); k == reflect.Map && !isKey(p.typ.Key()) {
			err = fmt.Errorf("the name of a JSON member cannot become a %v", p.typ.Key())
		}
	case k == reflect.Interface && p.typ.NumMethod() > 0, k == reflect.Chan, k == reflect.Func, p.typ == numberType,
		p.typ == fileType.Elem(), k == reflect.Complex64, k == reflect.Complex128, k == reflect.UnsafePointer:
		err = fmt.Errorf("JSON cannot become a %v", p.typ)
	case k == reflect.Struct:
		err = c.compileStruct(p)
	}
	return err
}

// isKey reports whether the name of a JSON member can become a key of a map.
func isKey(t reflect.Type) bool {
	switch k := t.Kind(); k {
	case reflect.Interface:
		return t.NumMethod() == 0
	case reflect.Array:
		return t.Elem().Kind() == reflect.Uint8 || decodesItself(t)
	default:
		return k == reflect.String || reflect.Int <= k && k <= reflect.Float64 || t == timeType || decodesItself(t)
	}
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
		if !slices.Contains([]string{"", "omitempty", "omitzero"}, option) {
			return false
		}
	}
	return !strings.ContainsAny(name, "\\\"'`")
}

// finish sets the field demands of all plans. It returns an error if a field has demands and is in a type that package
// json decodes as a whole.
func (c compiler) finish() error {
	for t, p := range c.plans {
		p.demands = p.hasDemands(map[*plan]bool{})
		if p.demands && p.whole {
			return fmt.Errorf("a %v can't have required fields, defaults or checks in its elements, nor beside fields "+
				"that are embedded by pointer, have the same name or have tag options", t)
		}
	}
	return nil
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
