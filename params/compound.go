package params

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
)

// decodePointer reads into what v points to, which it makes if there is nothing.
func decodePointer(elem *codec) decodeFunc {
	return func(d *decoder, v reflect.Value) error {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return elem.decode(d, v.Elem())
	}
}

func decodeOpt(inner *codec) decodeFunc {
	return func(d *decoder, v reflect.Value) error {
		slot := v.Addr().Interface().(optional).slot()
		return inner.decode(d, reflect.ValueOf(slot).Elem())
	}
}

func setOptNull(_ *decoder, v reflect.Value) error {
	v.Addr().Interface().(optional).setNull()
	return nil
}

// decodeSlice reads an array into a new slice, which begins with room for a few
// elements.
func decodeSlice(elem *codec, few int) decodeFunc {
	return func(d *decoder, v reflect.Value) error {
		if d.peek() != '[' {
			return d.mismatch("must be an array")
		}
		if err := d.enter(); err != nil {
			return err
		}
		v.SetZero() // what was in it may be shared
		if d.next() == ']' {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
			d.pos++
		} else if err := d.fill(elem, few, v); err != nil {
			return err
		}
		d.depth--
		return nil
	}
}

// fill appends the elements of an array to v.
func (d *decoder) fill(elem *codec, few int, v reflect.Value) error {
	v.Grow(few)
	d.path = append(d.path, step{})
	for i := 0; ; i++ {
		d.path[len(d.path)-1].index = i
		if err := d.element(); err != nil {
			return err
		}
		if i == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		d.next()
		if err := d.into(elem, v.Index(i)); err != nil {
			return err
		}
		if more, err := d.separator(']'); !more {
			d.path = d.path[:len(d.path)-1]
			return err
		}
	}
}

func decodeUnmarshaler(d *decoder, v reflect.Value) error {
	raw, err := d.skip()
	if err != nil {
		return err
	}
	if err := v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw); err != nil {
		return d.refuse("has a value that can't be decoded", err)
	}
	return nil
}

func decodeText(d *decoder, v reflect.Value) error {
	if d.peek() != '"' {
		return d.mismatch("must be a string")
	}
	raw, err := d.text()
	if err != nil {
		return err
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(unquote(raw)); err != nil {
		return d.refuse("has a value that can't be decoded", err)
	}
	return nil
}

// decodeForeign has encoding/json decode a value. If there are structs in it, two
// names of an object that differ in letter case only are refused: encoding/json
// would let either of them win.
func decodeForeign(structs bool) decodeFunc {
	return func(d *decoder, v reflect.Value) error {
		d.similar = nil
		raw, err := d.skip()
		if err != nil {
			return err
		}
		if structs && d.similar != nil {
			return d.twice(d.similar, inOtherCase)
		}
		if !d.options.DisallowUnknownFields {
			return d.foreign(json.Unmarshal(raw, v.Addr().Interface()))
		}
		j := json.NewDecoder(bytes.NewReader(raw))
		j.DisallowUnknownFields()
		return d.foreign(j.Decode(v.Addr().Interface()))
	}
}

const inOtherCase = "is given twice, in different letter case"

// foreign collects an error of encoding/json about the value at the current place.
func (d *decoder) foreign(err error) error {
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch):
		return d.refuseAt(mismatch.Field, mismatchDetail(mismatch), err)
	}
	// encoding/json has no type for this one.
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if name, uerr := strconv.Unquote(quoted); uerr == nil {
			return d.refuseAt(name, "is unknown", nil)
		}
	}
	return d.refuse("has a value that can't be decoded", err)
}

// refuseAt collects a mistake about something within the value at the current place.
func (d *decoder) refuseAt(path, detail string, cause error) error {
	var steps []step
	if path != "" {
		for name := range strings.SplitSeq(path, ".") {
			steps = append(steps, step{name: []byte(name)})
		}
	}
	return d.faults.add(d.at(&Error{Source: SourceJSON, Reason: ErrMalformed, Detail: detail, cause: cause}, steps...))
}

// mismatchDetail says which JSON type a Go type wants.
func mismatchDetail(m *json.UnmarshalTypeError) string {
	if m.Type == nil {
		return "has the wrong type"
	}
	isNumber := strings.HasPrefix(m.Value, "number")
	switch k := m.Type.Kind(); {
	case k >= reflect.Int && k <= reflect.Uintptr:
		if isNumber {
			return "must be a whole number in range"
		}
		return "must be a whole number"
	case isNumber && (k == reflect.Float32 || k == reflect.Float64 || k == reflect.Interface):
		return "is out of range"
	case k == reflect.Float32 || k == reflect.Float64:
		return "must be a number"
	case k == reflect.String:
		return "must be a string"
	case k == reflect.Bool:
		return "must be true or false"
	case k == reflect.Slice || k == reflect.Array:
		return "must be an array"
	case k == reflect.Struct || k == reflect.Map:
		return "must be an object"
	}
	return "has the wrong type"
}
