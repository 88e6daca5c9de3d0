package params

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// The parse functions return the value of a text, or a predicate that describes the fault in it. They refuse
// what package strconv accepts beyond JSON and HTML, such as a leading plus.

const outOfRange = "is out of range"

func parseInt(text string, bits int) (int64, string) {
	n, err := strconv.ParseInt(text, 10, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, outOfRange
	case err != nil, text[0] == '+':
		return 0, "must be a whole number"
	}
	return n, ""
}

// parseFloat refuses hexadecimal numbers, underscores, infinities and NaN.
func parseFloat(text string, bits int) (float64, string) {
	x, err := strconv.ParseFloat(text, bits)
	isDecimal := text != "" && text[0] != '+' && strings.Trim(text, "0123456789+-.eE") == ""
	switch {
	case errors.Is(err, strconv.ErrRange) && isDecimal:
		return 0, outOfRange
	case err != nil, !isDecimal:
		return 0, "must be a number"
	}
	return x, ""
}

func parseBool(text string) (bool, string) {
	switch text {
	case "true", "1", "on":
		return true, ""
	case "false", "0", "off":
		return false, ""
	}
	return false, "must be true or false"
}

const wantTime = "must be an RFC 3339 time, such as 2006-01-02T15:04:05Z"

// parseTime parses a time in the given layout. An empty layout means RFC 3339, for which parseTime refuses three things
// that time.Parse accepts: an hour of one digit, a comma before the fraction, and offsets of 24 hours or 60 minutes.
func parseTime(text, layout string) (time.Time, string) {
	if layout != "" {
		t, err := time.Parse(layout, text)
		if err != nil {
			return time.Time{}, "must have the form " + layout
		}
		return t, ""
	}
	t, err := time.Parse(time.RFC3339, text)
	end := len(text)
	if err != nil || text[len("2006-01-02T15")] != ':' || text[len("2006-01-02T15:04:05")] == ',' ||
		text[end-1] != 'Z' && (text[end-5:end-3] > "23" || text[end-2:] > "59") {
		return time.Time{}, wantTime
	}
	return t, ""
}

func parseDuration(text string) (time.Duration, string) {
	d, err := time.ParseDuration(text)
	if err != nil || text[0] == '+' {
		return 0, "must be a duration, such as 1m30s"
	}
	return d, ""
}

// checkText returns an error if a text cannot become a value of type t.
func checkText(t reflect.Type) error {
	t, _ = targetOf(t)
	k := t.Kind()
	if decodesText(t) || t == durationType || k == reflect.String || reflect.Bool <= k && k <= reflect.Float64 {
		return nil
	}
	return fmt.Errorf("a text cannot become a %v", t)
}

func decodesText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshalText) }

// setText sets a value to a text, or returns a predicate that describes the fault in the text. The cause is the error of
// the type's own method. layout is for times, as in parseTime.
func setText(v reflect.Value, text, layout string) (fault string, cause error) {
	v = target(v)
	decoder, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	if !ok || v.Type() == timeType {
		return setBasic(v, text, layout), nil
	}
	if err := decoder.UnmarshalText([]byte(text)); err != nil {
		return "has a value that can't be decoded", err
	}
	return "", nil
}

// setBasic sets a string, a boolean, a number, a duration or a time.
func setBasic(v reflect.Value, text, layout string) string {
	switch {
	case v.Type() == durationType:
		d, fault := parseDuration(text)
		v.SetInt(int64(d))
		return fault
	case v.CanInt():
		n, fault := parseInt(text, v.Type().Bits())
		v.SetInt(n)
		return fault
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if v.SetUint(n); err == nil {
			return ""
		}
		_, fault := parseInt(text, 64)
		return cmp.Or(fault, outOfRange)
	case v.CanFloat():
		x, fault := parseFloat(text, v.Type().Bits())
		v.SetFloat(x)
		return fault
	case v.Kind() == reflect.String:
		v.SetString(text)
		return ""
	case v.Kind() == reflect.Bool:
		b, fault := parseBool(text)
		v.SetBool(b)
		return fault
	}
	t, fault := parseTime(text, layout)
	v.Set(reflect.ValueOf(t))
	return fault
}

// layoutOf returns the tag layout of a field that is filled from a source, or "" if it has none.
func layoutOf(sf reflect.StructField, from Source) (string, error) {
	layout, ok := sf.Tag.Lookup("layout")
	t := sf.Type
	if isList(t) {
		t = t.Elem()
	}
	t, _ = targetOf(t)
	switch {
	case !ok:
		return "", nil
	case t != timeType:
		return "", fmt.Errorf("a %v can't have the tag layout", sf.Type)
	case from == SourceJSON:
		return "", errors.New("a time in JSON can't have the tag layout, because its form is RFC 3339")
	case !isLayout(layout):
		return "", fmt.Errorf("has the tag layout with %q, want a layout of package time, such as 2006-01-02", layout)
	}
	return layout, nil
}

// isLayout reports whether a layout has parts of a time, and whether these parts can be parsed without being changed. An
// hour from 1 to 12 without PM, for example, cannot.
func isLayout(layout string) bool {
	at, missing := time.Date(2031, time.November, 28, 17, 45, 39, 0, time.UTC), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	got, err := time.Parse(layout, at.Format(layout))
	for _, part := range [...]string{"2006", "01", "02", "15", "04", "05"} {
		if p := got.Format(part); p != at.Format(part) && p != missing.Format(part) {
			return false
		}
	}
	return err == nil && !got.Equal(missing)
}
