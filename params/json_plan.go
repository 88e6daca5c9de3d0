package params

import (
	"encoding"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// A jsonPlan is how values of a type are read from JSON, compiled once for the type.
type jsonPlan struct {
	decode  func(*jsonDecoder, *jsonPlan, reflect.Value) error
	typ     reflect.Type
	elem    *jsonPlan      // of a pointer, a slice, an array, a map or an Opt
	fields  []jsonField    // of a struct
	names   map[string]int // of the fields
	demands bool           // a field is required or has a default, or one in a struct that is a field
	whole   bool           // package json alone can decode it: nothing in it demands anything or needs jsonOptions
}

type jsonField struct {
	name     string
	index    []int
	plan     *jsonPlan
	required bool
	def      reflect.Value // the zero Value for none
}

// jsonPlans are the compiled ones, a *jsonPlan or an error for each type.
var jsonPlans sync.Map

var (
	timeType      = reflect.TypeFor[time.Time]()
	durationType  = reflect.TypeFor[time.Duration]()
	numberType    = reflect.TypeFor[stdjson.Number]()
	unmarshalText = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshalJSON = reflect.TypeFor[json.Unmarshaler]()
	unmarshalFrom = reflect.TypeFor[json.UnmarshalerFrom]()
)

// jsonPlanOf returns the plan of t. Its error is a mistake in t.
func jsonPlanOf(t reflect.Type) (*jsonPlan, error) {
	return compiled(&jsonPlans, t, func() (*jsonPlan, error) {
		m := jsonCompiler{}
		p, err := m.plan(t)
		if err == nil {
			p.whole, err = m.check()
		}
		if err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
		return p, nil
	})
}

// A jsonCompiler holds the plans that are being made, which a type may need within
// itself.
type jsonCompiler map[reflect.Type]*jsonPlan

// check reports whether package json alone can decode all of the types. It returns an
// error if a field demands something where nothing looks at it.
func (m jsonCompiler) check() (whole bool, err error) {
	whole = true
	for t, p := range m {
		whole = whole && !p.demands && !isOpt(t) && t != durationType && t != numberType
		if k := t.Kind(); (k == reflect.Array || k == reflect.Map) && p.elem != nil && p.elem.innermost().demands {
			return false, fmt.Errorf("a %v can't have required fields and defaults in its elements", t)
		}
	}
	return whole, nil
}

func (m jsonCompiler) plan(t reflect.Type) (*jsonPlan, error) {
	if p := m[t]; p != nil {
		return p, nil
	}
	p := &jsonPlan{typ: t, decode: (*jsonDecoder).raw}
	m[t] = p
	return p, m.compile(p)
}

func (m jsonCompiler) compile(p *jsonPlan) (err error) {
	inner, isOpt := innerOf(p.typ)
	switch k := p.typ.Kind(); {
	case isOpt:
		p.decode = (*jsonDecoder).opt
		p.elem, err = m.plan(inner)
	case decodesItself(p.typ):
	case p.typ == timeType, k == reflect.Bool, k == reflect.String, reflect.Int <= k && k <= reflect.Float64:
		p.decode = (*jsonDecoder).scalar
	case k == reflect.Pointer:
		p.decode = (*jsonDecoder).pointer
		p.elem, err = m.plan(p.typ.Elem())
	case k == reflect.Slice && p.typ.Elem().Kind() != reflect.Uint8: // bytes are base64
		p.decode = (*jsonDecoder).slice
		p.elem, err = m.plan(p.typ.Elem())
	case k == reflect.Array, k == reflect.Map:
		p.elem, err = m.plan(p.typ.Elem())
	case k == reflect.Struct:
		err = m.compileStruct(p)
	case k == reflect.Interface && p.typ.NumMethod() > 0, k == reflect.Chan, k == reflect.Func,
		k == reflect.Complex64, k == reflect.Complex128, k == reflect.UnsafePointer:
		err = fmt.Errorf("no JSON can be a %v", p.typ)
	}
	return err
}

// decodesItself reports whether a type has a method for it.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t != timeType && (p.Implements(unmarshalJSON) || p.Implements(unmarshalFrom) || p.Implements(unmarshalText))
}

// innermost returns the plan of what is in lists and behind pointers. A type that is
// only a list of itself has none.
func (p *jsonPlan) innermost() *jsonPlan {
	for i := 0; p.elem != nil && i < 16; i++ {
		p = p.elem
	}
	return p
}

// compileStruct compiles a struct. One with fields that the json package has rules for,
// such as which of two with one name wins, is left to it.
func (m jsonCompiler) compileStruct(p *jsonPlan) error {
	if err := json.Unmarshal([]byte("{}"), reflect.New(p.typ).Interface(), jsonOptions); err != nil {
		return err // it says which tag is wrong
	}
	fields, simple, err := m.fields(p.typ, nil)
	if err != nil {
		return err
	}
	if simple && p.setFields(fields) {
		p.decode = (*jsonDecoder).object
		return nil
	}
	if slices.ContainsFunc(fields, jsonField.demands) {
		return fmt.Errorf("%v can't have required fields and defaults beside fields that are embedded by pointer, have the same name or have tag options", p.typ)
	}
	return nil
}

// setFields returns false if two fields have the same name.
func (p *jsonPlan) setFields(fields []jsonField) bool {
	names := make(map[string]int, len(fields))
	for i := range fields {
		names[fields[i].name] = i
	}
	if len(names) < len(fields) {
		return false
	}
	p.fields, p.names = fields, names
	p.demands = slices.ContainsFunc(fields, jsonField.demands)
	return true
}

// demands reports whether something is to be done if f is absent.
func (f jsonField) demands() bool {
	return f.required || f.def.IsValid() || f.plan.demands
}

// fields lists the fields of a struct and of the structs that are embedded in it.
// simple is false if some are only for the json package.
func (m jsonCompiler) fields(t reflect.Type, index []int) (fields []jsonField, simple bool, err error) {
	simple = true
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		tag := sf.Tag.Get("json")
		name, plain := jsonName(tag)
		switch {
		case tag == "-":
			continue
		case sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct:
			inner, ok, err := m.fields(sf.Type, at)
			if err != nil {
				return nil, false, err
			}
			fields, simple = append(fields, inner...), simple && ok
			continue
		case sf.Anonymous:
			simple = false
			continue
		case !sf.IsExported():
			continue
		}
		f, err := m.field(sf, name, at)
		if err != nil {
			return nil, false, fmt.Errorf("%v.%s: %w", t, sf.Name, err)
		}
		fields, simple = append(fields, f), simple && plain
	}
	return fields, simple, nil
}

// jsonName returns the name that a tag gives. plain is false for one with quotes, and
// for options that change how a value is read.
func jsonName(tag string) (name string, plain bool) {
	name, options, _ := strings.Cut(tag, ",")
	plain = !strings.ContainsAny(name, "\\\"'`")
	for option := range strings.SplitSeq(options, ",") {
		plain = plain && (option == "" || option == "omitempty" || option == "omitzero")
	}
	return name, plain
}

func (m jsonCompiler) field(sf reflect.StructField, name string, index []int) (f jsonField, err error) {
	if name == "" {
		name = sf.Name
	}
	f = jsonField{name: name, index: index}
	if f.plan, err = m.plan(sf.Type); err == nil {
		f.required, f.def, err = demandOf(sf)
	}
	return f, err
}

func fieldAt(v reflect.Value, index []int) reflect.Value {
	if len(index) == 1 {
		return v.Field(index[0])
	}
	return v.FieldByIndex(index)
}
