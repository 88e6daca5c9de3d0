package params

import (
	"errors"
	"fmt"
	"reflect"
	"time"
)

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

// isLayout reports whether a layout has parts of a time, and whether the parts can be parsed without being changed. An
// hour from 1 to 12 without PM, for example, cannot.
func isLayout(layout string) bool {
	partsOf := func(t time.Time) [6]int {
		return [6]int{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second()}
	}
	at := time.Date(2031, time.November, 28, 17, 45, 39, 0, time.UTC)
	parsed, err := time.Parse(layout, at.Format(layout))
	got, want, missing := partsOf(parsed), partsOf(at), [6]int{0, 1, 1, 0, 0, 0}
	for i := range got {
		if got[i] != want[i] && got[i] != missing[i] {
			return false
		}
	}
	return err == nil && got != missing
}
