package params

import (
	stdjson "encoding/json"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An Opt is a field whose parameter is absent, null, or has a value. The zero value means absent. It works in
// [Bind] and in encoding/json, whose tag option omitzero leaves out an absent Opt.
type Opt[T any] struct {
	val   T
	state optState
}

type optState uint8

const (
	absent optState = iota
	null
	given
)

// Some returns an Opt that has a value.
func Some[T any](v T) Opt[T] { return Opt[T]{v, given} }

// Null returns an Opt that is null.
func Null[T any]() Opt[T] { return Opt[T]{state: null} }

// Get returns the value, and whether there is one.
func (o Opt[T]) Get() (v T, ok bool) { return o.val, o.state == given }

// Or returns the value, or def if there is none.
func (o Opt[T]) Or(def T) T {
	if o.state == given {
		return o.val
	}
	return def
}

// IsNull reports whether null was given.
func (o Opt[T]) IsNull() bool { return o.state == null }

// IsZero reports whether nothing was given, not even null. The tag option omitzero of encoding/json calls it.
func (o Opt[T]) IsZero() bool { return o.state == absent }

// MarshalJSON writes the value, or null if there is none.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if o.state != given {
		return []byte("null"), nil
	}
	return stdjson.Marshal(o.val)
}

// UnmarshalJSON reads a value or null.
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	*o = Null[T]()
	if string(data) == "null" {
		return nil
	}
	return stdjson.Unmarshal(data, o.prepareSet())
}

// UnmarshalJSONFrom is UnmarshalJSON for package json, with its options.
func (o *Opt[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' {
		*o = Null[T]()
		return dec.SkipValue()
	}
	return json.UnmarshalDecode(dec, o.prepareSet())
}

// optional is implemented by pointers to all Opts.
type optional interface {
	innerType() reflect.Type
	prepareSet() any // marks the value as given, and returns a pointer to it
}

func (o *Opt[T]) innerType() reflect.Type { return reflect.TypeFor[T]() }

func (o *Opt[T]) prepareSet() any {
	o.state = given
	return &o.val
}

// optInnerType returns the T of an Opt[T].
func optInnerType(t reflect.Type) (inner reflect.Type, ok bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	o, ok := reflect.New(t).Interface().(optional)
	if !ok {
		return nil, false
	}
	return o.innerType(), true
}

// targetOf returns the type behind pointers and Opts. If they lead to themselves, it returns one of them and false.
func targetOf(t reflect.Type) (target reflect.Type, ends bool) {
	for seen := map[reflect.Type]bool{}; !seen[t]; {
		seen[t] = true
		inner, isOpt := optInnerType(t)
		switch {
		case isOpt:
			t = inner
		case t.Kind() == reflect.Pointer:
			t = t.Elem()
		default:
			return t, true
		}
	}
	return t, false
}

// target returns the value behind pointers and Opts. It replaces nil pointers and fills absent Opts.
func target(v reflect.Value) reflect.Value {
	if inner := pointee(v); inner.IsValid() {
		return target(inner)
	}
	return v
}

// pointee returns the value behind a pointer or in an Opt. It replaces a nil pointer and fills an absent Opt. It returns
// the zero Value for other types.
func pointee(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return v.Elem()
	case reflect.Struct:
		if o, ok := v.Addr().Interface().(optional); ok {
			return reflect.ValueOf(o.prepareSet()).Elem()
		}
	}
	return reflect.Value{}
}
