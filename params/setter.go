package params

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// A setter puts a text into a value, or describes as a predicate what is wrong with it;
// cause is the error of a type's own method.
type setter func(v reflect.Value, text string) (fault string, cause error)

// setterOf returns the setter of a type. Its error is that there is none.
func setterOf(t reflect.Type) (setter, error) {
	if inner := targetOf(t); inner != t {
		set, err := setterOf(inner)
		return func(v reflect.Value, text string) (string, error) { return set(target(v), text) }, err
	}
	switch k := t.Kind(); {
	case t == timeType:
		return setTime, nil
	case t == durationType:
		return setDuration, nil
	case decodesText(t):
		return setByMethod, nil
	case k == reflect.String:
		return setString, nil
	case reflect.Bool <= k && k <= reflect.Float64:
		return setBasic, nil
	}
	return nil, fmt.Errorf("a text cannot become a %v", t)
}

func decodesText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshalText) }

func setString(v reflect.Value, text string) (string, error) {
	v.SetString(text)
	return "", nil
}

// setBasic sets a boolean or a number.
func setBasic(v reflect.Value, text string) (fault string, cause error) {
	switch {
	case v.CanInt():
		n, fault := parseInt(text)
		if v.SetInt(n); v.OverflowInt(n) {
			fault = "is out of range"
		}
		return fault, nil
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, 64)
		if v.SetUint(n); err == nil && !v.OverflowUint(n) {
			return "", nil
		}
		_, fault := parseInt(text)
		return cmp.Or(fault, "is out of range"), nil
	case v.CanFloat():
		x, fault := parseFloat(text, v.Type().Bits())
		v.SetFloat(x)
		return fault, nil
	}
	b, fault := parseBool(text)
	v.SetBool(b)
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
