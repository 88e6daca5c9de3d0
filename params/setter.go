package params

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// A setter puts a text into a value, or says as a predicate what is wrong with it;
// cause is what a type's own method says.
type setter func(v reflect.Value, text string) (fault string, cause error)

// setterOf returns the setter of a type. Its error is that there is none.
func setterOf(t reflect.Type) (setter, error) {
	switch inner, isOpt := innerOf(t); {
	case isOpt:
		set, err := setterOf(inner)
		return func(v reflect.Value, text string) (string, error) {
			return set(reflect.ValueOf(v.Addr().Interface().(optional).slot()).Elem(), text)
		}, err
	case t == timeType:
		return setTime, nil
	case t == durationType:
		return setDuration, nil
	case reflect.PointerTo(t).Implements(unmarshalText):
		return setByMethod, nil
	}
	switch k := t.Kind(); {
	case k == reflect.String:
		return func(v reflect.Value, text string) (string, error) { v.SetString(text); return "", nil }, nil
	case k == reflect.Bool:
		return setBool, nil
	case reflect.Int <= k && k <= reflect.Int64:
		return setInt(t.Bits()), nil
	case reflect.Uint <= k && k <= reflect.Uintptr:
		return setUint(t.Bits()), nil
	case k == reflect.Float32 || k == reflect.Float64:
		return setFloat, nil
	case k == reflect.Pointer:
		set, err := setterOf(t.Elem())
		return func(v reflect.Value, text string) (string, error) {
			v.Set(reflect.New(v.Type().Elem()))
			return set(v.Elem(), text)
		}, err
	}
	return nil, fmt.Errorf("no text can be a %v", t)
}

func setBool(v reflect.Value, text string) (string, error) {
	b, fault := parseBool(text)
	v.SetBool(b)
	return fault, nil
}

func setInt(bits int) setter {
	return func(v reflect.Value, text string) (string, error) {
		n, fault := parseInt(text, bits)
		v.SetInt(n)
		return fault, nil
	}
}

func setUint(bits int) setter {
	return func(v reflect.Value, text string) (string, error) {
		n, err := strconv.ParseUint(text, 10, bits)
		if err == nil {
			v.SetUint(n)
			return "", nil
		}
		_, fault := parseInt(text, 64)
		return cmp.Or(fault, "is out of range"), nil
	}
}

func setFloat(v reflect.Value, text string) (string, error) {
	x, fault := parseFloat(text, v.Type().Bits())
	v.SetFloat(x)
	return fault, nil
}

func setTime(v reflect.Value, text string) (string, error) {
	t, fault := parseTime(text)
	*v.Addr().Interface().(*time.Time) = t
	return fault, nil
}

func setDuration(v reflect.Value, text string) (string, error) {
	d, err := time.ParseDuration(text)
	if err != nil || text[0] == '+' {
		return "must be a duration, such as 1m30s", nil
	}
	v.SetInt(int64(d))
	return "", nil
}

func setByMethod(v reflect.Value, text string) (string, error) {
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
		return "has a value that can't be decoded", err
	}
	return "", nil
}

// demandOf returns what a field's tags required and default say. The default is shared
// by all that get it, so it has nothing to change in it; it is the zero Value for none.
func demandOf(sf reflect.StructField) (required bool, def reflect.Value, err error) {
	if word, ok := sf.Tag.Lookup("required"); ok {
		if required = word == "true"; !required {
			return false, def, fmt.Errorf("has the tag required with %q, want true", word)
		}
	}
	text, ok := sf.Tag.Lookup("default")
	switch {
	case !ok:
		return required, def, nil
	case required:
		return false, def, errors.New("a required field needs no default")
	case sf.Type.Kind() == reflect.Pointer:
		return false, def, fmt.Errorf("a %v can't have a default", sf.Type)
	}
	set, err := setterOf(sf.Type)
	if err != nil {
		return false, def, err
	}
	v := reflect.New(sf.Type).Elem()
	if fault, cause := set(v, text); fault != "" {
		return false, def, errors.Join(fmt.Errorf("the default %q %s", text, fault), cause)
	}
	return false, v, nil
}
