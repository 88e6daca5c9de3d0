package params

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
	"time"
)

// A codec is how values of a type are read from JSON, compiled once for the type.
type codec struct {
	decode  decodeFunc // of any value but null
	setNull decodeFunc // after null was read
}

type decodeFunc func(d *decoder, v reflect.Value) error

// codecs are the compiled ones, a *codec or an error for each type.
var codecs sync.Map

var (
	timeType       = reflect.TypeFor[time.Time]()
	numberType     = reflect.TypeFor[json.Number]()
	unmarshalJSON  = reflect.TypeFor[json.Unmarshaler]()
	unmarshalText  = reflect.TypeFor[encoding.TextUnmarshaler]()
	leaveUnchanged = func(*decoder, reflect.Value) error { return nil }
	makeZero       = func(_ *decoder, v reflect.Value) error { v.SetZero(); return nil }
)

// codecOf returns the codec of t. Its error is a mistake in t's tags.
func codecOf(t reflect.Type) (*codec, error) {
	known, ok := codecs.Load(t)
	if !ok {
		var err error
		if known, err = make(compiler).codec(t); err != nil {
			known = err
		}
		known, _ = codecs.LoadOrStore(t, known)
	}
	if err, ok := known.(error); ok {
		return nil, err
	}
	return known.(*codec), nil
}

// A compiler holds the codecs that are being made, which a type may need within
// itself.
type compiler map[reflect.Type]*codec

func (m compiler) codec(t reflect.Type) (*codec, error) {
	if c := m[t]; c != nil {
		return c, nil
	}
	c := new(codec)
	m[t] = c
	made, err := m.compile(t)
	*c = made
	return c, err
}

func (m compiler) compile(t reflect.Type) (codec, error) {
	pointer := reflect.PointerTo(t)
	switch inner, isOpt := innerOf(t); {
	case isOpt:
		c, err := m.codec(inner)
		return codec{decodeOpt(c), setOptNull}, err
	case t == timeType:
		return codec{decodeTime, leaveUnchanged}, nil
	case pointer.Implements(unmarshalJSON):
		return codec{decodeUnmarshaler, func(_ *decoder, v reflect.Value) error {
			return v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON([]byte("null"))
		}}, nil
	case pointer.Implements(unmarshalText):
		return codec{decodeText, leaveUnchanged}, nil
	}
	return m.compileKind(t)
}

func (m compiler) compileKind(t reflect.Type) (codec, error) {
	switch k := t.Kind(); {
	case k == reflect.String && t != numberType:
		return codec{decodeString, leaveUnchanged}, nil
	case k == reflect.Bool:
		return codec{decodeBool, leaveUnchanged}, nil
	case reflect.Int <= k && k <= reflect.Int64:
		return codec{decodeInt, leaveUnchanged}, nil
	case reflect.Uint <= k && k <= reflect.Uintptr:
		return codec{decodeUint, leaveUnchanged}, nil
	case k == reflect.Float32 || k == reflect.Float64:
		return codec{decodeFloat, leaveUnchanged}, nil
	case k == reflect.Pointer:
		elem, err := m.codec(t.Elem())
		return codec{decodePointer(elem), makeZero}, err
	case k == reflect.Slice && t.Elem().Kind() != reflect.Uint8: // bytes are base64
		elem, err := m.codec(t.Elem())
		return codec{decodeSlice(elem, firstElements(t.Elem())), makeZero}, err
	case k == reflect.Struct:
		s, err := m.structOf(t)
		if s != nil || err != nil {
			return codec{s.decode, leaveUnchanged}, err
		}
	}
	return foreignCodec(t), nil
}

// firstElements is how many elements a slice begins with.
func firstElements(t reflect.Type) int {
	if t.Size() > 64 {
		return 1
	}
	return 4
}

// foreignCodec leaves t to encoding/json, after the text was checked.
func foreignCodec(t reflect.Type) codec {
	c := codec{decodeForeign(decodesStructs(t)), leaveUnchanged}
	switch t.Kind() {
	case reflect.Map, reflect.Interface, reflect.Slice:
		c.setNull = makeZero
	}
	return c
}

// decodesStructs reports whether t may have fields that encoding/json matches names
// with. Types without end, such as a slice of itself, are taken to have some.
func decodesStructs(t reflect.Type) bool {
	for range 16 {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		case reflect.Struct:
			return true
		default:
			return false
		}
	}
	return true
}
