package params

import (
	"encoding/json"
	"reflect"
)

// An Opt is a field that tells apart what was not given, what was given as null, and
// what has a value. The zero Opt is absent. It works in Bind and in encoding/json,
// where the option omitzero leaves out what is absent.
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

// IsAbsent reports whether nothing was given, not even null.
func (o Opt[T]) IsAbsent() bool { return o.state == absent }

// IsNull reports whether null was given.
func (o Opt[T]) IsNull() bool { return o.state == null }

// IsZero is IsAbsent, for omitzero.
func (o Opt[T]) IsZero() bool { return o.state == absent }

// MarshalJSON writes the value, or null if there is none.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if o.state != given {
		return []byte("null"), nil
	}
	return json.Marshal(o.val)
}

// UnmarshalJSON reads a value or null.
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		o.setNull()
		return nil
	}
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*o = Some(v)
	return nil
}

// optional is what all Opts have in common.
type optional interface {
	inner() reflect.Type
	slot() any // a pointer to the value, which is given from then on
	setNull()
}

func (o *Opt[T]) inner() reflect.Type { return reflect.TypeFor[T]() }

func (o *Opt[T]) slot() any {
	o.state = given
	return &o.val
}

func (o *Opt[T]) setNull() { *o = Null[T]() }

var optionalType = reflect.TypeFor[optional]()

// innerOf returns the type within an Opt.
func innerOf(t reflect.Type) (inner reflect.Type, ok bool) {
	if t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(optionalType) {
		return nil, false
	}
	return reflect.New(t).Interface().(optional).inner(), true
}
