package params

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// A jsonPlan is what a [jsonWalk] has to know of a type, compiled once for the type.
// A plan without fields and without elem is of a type that package json decodes as a whole.
type jsonPlan struct {
	typ    reflect.Type
	elem   *jsonPlan      // of a pointer, a slice, an array, a map or an Opt
	whole  bool           // an array or a map: elem is not looked at
	fields []jsonField    // of a struct
	names  map[string]int // of the fields

	// Of the plan of a whole text:
	demands bool           // a field in it has demands
	options []json.Options // to decode it with
}

type jsonField struct {
	name  string
	index []int
	plan  *jsonPlan
	demands
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
	return loadOrCompile(&jsonPlans, t, func() (*jsonPlan, error) {
		p, err := compileJSON(t)
		if err != nil {
			return nil, fmt.Errorf("params: JSON into a %v: %w", t, err)
		}
		return p, nil
	})
}

// A jsonCompiler holds the plans that are being made: a type may occur within itself.
type jsonCompiler map[reflect.Type]*jsonPlan

// compileJSON returns an error if a field demands something where no walk comes by.
func compileJSON(t reflect.Type) (*jsonPlan, error) {
	m := jsonCompiler{}
	p, err := m.planFor(t)
	if err != nil {
		return nil, err
	}
	for t, inner := range m {
		if inner.whole && inner.elem.hasDemands(map[*jsonPlan]bool{}) {
			return nil, fmt.Errorf("a %v can't have required fields, defaults or checks in its elements", t)
		}
	}
	p.demands = p.hasDemands(map[*jsonPlan]bool{})
	if m[durationType] != nil {
		p.options = append(p.options, durationsAsNumbers)
	}
	if m[numberType] != nil {
		p.options = append(p.options, numbersAsTexts)
	}
	return p, nil
}

// hasDemands reports whether a field in p has demands, leaving out the plans that were seen.
func (p *jsonPlan) hasDemands(seen map[*jsonPlan]bool) bool {
	if p == nil || seen[p] {
		return false
	}
	seen[p] = true
	return p.elem.hasDemands(seen) || slices.ContainsFunc(p.fields, func(f jsonField) bool {
		return f.demands.any() || f.plan.hasDemands(seen)
	})
}

func (m jsonCompiler) planFor(t reflect.Type) (*jsonPlan, error) {
	if p := m[t]; p != nil {
		return p, nil
	}
	p := &jsonPlan{typ: t}
	m[t] = p
	return p, m.compile(p)
}

func (m jsonCompiler) compile(p *jsonPlan) (err error) {
	inner, isOpt := optInnerType(p.typ)
	switch k := p.typ.Kind(); {
	case isOpt:
		p.elem, err = m.planFor(inner)
	case p.typ == timeType, decodesItself(p.typ):
	case k == reflect.Pointer, k == reflect.Slice && p.typ.Elem().Kind() != reflect.Uint8: // bytes are base64
		p.elem, err = m.planFor(p.typ.Elem())
	case k == reflect.Array, k == reflect.Map:
		p.whole = true
		if k == reflect.Map {
			err = m.compileKey(p.typ.Key())
		}
		if err == nil {
			p.elem, err = m.planFor(p.typ.Elem())
		}
	case k == reflect.Struct:
		err = m.compileStruct(p)
	case k == reflect.Interface && p.typ.NumMethod() > 0, k == reflect.Chan, k == reflect.Func,
		k == reflect.Complex64, k == reflect.Complex128, k == reflect.UnsafePointer:
		err = fmt.Errorf("JSON cannot become a %v", p.typ)
	}
	return err
}

// compileKey returns an error if the name of a member cannot become a key of this type.
func (m jsonCompiler) compileKey(t reflect.Type) error {
	_, err := m.planFor(t)
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

// compileStruct leaves a struct to package json if only that knows which of its fields a
// member belongs to, or how its value is written.
func (m jsonCompiler) compileStruct(p *jsonPlan) error {
	var mistake *json.SemanticError
	if errors.As(json.Unmarshal([]byte("{}"), reflect.New(p.typ).Interface()), &mistake) {
		return mistake.Err // a malformed tag, or two fields of one name
	}
	fields, simple, err := m.listFields(p.typ, nil)
	if err != nil {
		return err
	}
	names := make(map[string]int, len(fields))
	for i := range fields {
		names[fields[i].name] = i
	}
	p.fields = fields
	if simple && len(names) == len(fields) {
		p.names = names
		return nil
	}
	if p.hasDemands(map[*jsonPlan]bool{}) {
		return fmt.Errorf("%v can't have required fields, defaults or checks beside fields that are embedded by pointer, have the same name or have tag options", p.typ)
	}
	p.fields = nil
	return nil
}

// listFields lists the fields of a struct and of the structs that are embedded in it.
// simple is false if there are others that package json has rules for.
func (m jsonCompiler) listFields(t reflect.Type, index []int) (fields []jsonField, simple bool, err error) {
	simple = true
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		tag := sf.Tag.Get("json")
		name, plain, isText := jsonName(tag)
		switch {
		case tag == "-":
			continue
		case sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct:
			inner, ok, err := m.listFields(sf.Type, at)
			if err = errors.Join(err, refuseDemands(sf)); err != nil {
				return nil, false, err
			}
			fields, simple = append(fields, inner...), simple && ok
			continue
		case sf.Anonymous:
			plain = false
		case !sf.IsExported():
			continue
		case isText && !isJSONNumber(sf.Type):
			return nil, false, fmt.Errorf("%s: the tag option string is only for numbers", sf.Name)
		}
		f := jsonField{name: name, index: at}
		if name == "" {
			f.name = sf.Name
		}
		if f.plan, err = m.planFor(sf.Type); err == nil {
			f.demands, err = demandsOf(sf)
		}
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", sf.Name, err)
		}
		fields, simple = append(fields, f), simple && plain
	}
	return fields, simple, nil
}

// jsonName returns the name that a tag gives. plain is false for one with quotes, and
// for options that change how a value is read. isText reports whether the value is a number in a
// string.
func jsonName(tag string) (name string, plain, isText bool) {
	name, options, _ := strings.Cut(tag, ",")
	plain = !strings.ContainsAny(name, "\\\"'`")
	for option := range strings.SplitSeq(options, ",") {
		plain = plain && (option == "" || option == "omitempty" || option == "omitzero")
		isText = isText || option == "string"
	}
	return name, plain, isText
}

// isJSONNumber reports whether a type or the one that it points to is decoded from a JSON number,
// or by a method of its own.
func isJSONNumber(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return reflect.Int <= t.Kind() && t.Kind() <= reflect.Float64 || t == numberType || decodesItself(t)
}

func fieldAt(v reflect.Value, index []int) reflect.Value {
	if len(index) == 1 {
		return v.Field(index[0])
	}
	return v.FieldByIndex(index)
}
