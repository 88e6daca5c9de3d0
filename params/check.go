package params

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// A check is a condition on a field's value. If it is not met, reason and detail are those of the [Error].
type check struct {
	reason error
	detail string
	ok     func(v reflect.Value) bool
}

// A limitTag is a tag that limits a number, or the size of another value.
type limitTag struct {
	tag, ofNumber, ofSize string
	allows                func(order int) bool // of the value and the limit
}

var limitTags = []limitTag{
	{"min", "must be at least ", "must have at least ", func(order int) bool { return order >= 0 }},
	{"max", "must be at most ", "must have at most ", func(order int) bool { return order <= 0 }},
	{"len", "", "must have exactly ", func(order int) bool { return order == 0 }},
}

// hasChecks reports whether a field's tags state checks.
func hasChecks(tag reflect.StructTag) bool {
	_, oneOf := tag.Lookup("oneof")
	return oneOf || tag.Get("required") == "nonempty" || slices.ContainsFunc(limitTags, func(l limitTag) bool {
		_, ok := tag.Lookup(l.tag)
		return ok
	})
}

// compileChecks returns the checks that a field's tags state of values of type t.
func compileChecks(t reflect.Type, tag reflect.StructTag) (checks []check, err error) {
	if tag.Get("required") == "nonempty" {
		if sizeUnit(t) == "" {
			return nil, fmt.Errorf("a %v can't have the tag required with nonempty", t)
		}
		checks = append(checks, check{ErrMissing, "must not be empty", func(v reflect.Value) bool { return v.Len() > 0 }})
	}
	limits := map[string]reflect.Value{}
	for _, l := range limitTags {
		text, ok := tag.Lookup(l.tag)
		if !ok {
			continue
		}
		limit, detail, err := l.compile(t, text)
		if err != nil {
			return nil, err
		}
		limits[l.tag] = limit
		checks = append(checks, check{ErrInvalid, detail, func(v reflect.Value) bool {
			return !(v.CanFloat() && math.IsNaN(v.Float())) && l.allows(compare(v, limit))
		}})
	}
	for _, pair := range [][2]string{{"min", "max"}, {"min", "len"}, {"len", "max"}} {
		if least, most := limits[pair[0]], limits[pair[1]]; least.IsValid() && most.IsValid() && compare(least, most) > 0 {
			return nil, fmt.Errorf("the %s %q is more than the %s %q", pair[0], tag.Get(pair[0]), pair[1], tag.Get(pair[1]))
		}
	}
	if words, ok := tag.Lookup("oneof"); ok {
		c, err := compileOneOf(t, strings.Fields(words))
		return append(checks, c), err
	}
	return checks, nil
}

// compile returns the limit that a tag states of values of type t, and the detail of an error.
func (l *limitTag) compile(t reflect.Type, text string) (limit reflect.Value, detail string, err error) {
	detail = l.ofNumber + text
	if unit := sizeUnit(t); unit != "" {
		t, detail = reflect.TypeFor[uint](), l.ofSize+text+" "+unit
		if text != "1" {
			detail += "s"
		}
	} else if l.ofNumber == "" || t.Kind() < reflect.Int || t.Kind() > reflect.Float64 {
		return limit, "", fmt.Errorf("a %v can't have the tag %s", t, l.tag)
	}
	limit, err = parseTag(t, l.tag, text)
	return limit, detail, err
}

// sizeUnit returns what the size of a value counts. It returns "" for a type that has no size.
func sizeUnit(t reflect.Type) string {
	switch k := t.Kind(); {
	case t == numberType: // has the kind of a string
	case k == reflect.String:
		return "character"
	case k == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "byte"
	case k == reflect.Slice, k == reflect.Map:
		return "element"
	}
	return ""
}

// compare compares a number, or the size of another value, with a limit.
func compare(v, limit reflect.Value) int {
	switch {
	case v.CanInt():
		return cmp.Compare(v.Int(), limit.Int())
	case v.CanUint():
		return cmp.Compare(v.Uint(), limit.Uint())
	case v.CanFloat():
		return cmp.Compare(v.Float(), limit.Float())
	case v.Kind() == reflect.String:
		return cmp.Compare(uint64(utf8.RuneCountInString(v.String())), limit.Uint())
	}
	return cmp.Compare(uint64(v.Len()), limit.Uint())
}

// compileOneOf returns the check of the tag oneof.
func compileOneOf(t reflect.Type, words []string) (c check, err error) {
	switch k := t.Kind(); {
	case k != reflect.String && (k < reflect.Int || k > reflect.Uint64):
		return c, fmt.Errorf("a %v can't have the tag oneof", t)
	case len(words) == 0:
		return c, errors.New("has an empty tag oneof")
	}
	values := make([]reflect.Value, len(words))
	for i, word := range words {
		if values[i], err = parseTag(t, "oneof", word); err != nil {
			return c, err
		}
	}
	return check{ErrInvalid, "must be one of " + strings.Join(words, ", "), func(v reflect.Value) bool {
		return slices.ContainsFunc(values, v.Equal)
	}}, nil
}
