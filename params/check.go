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

// demands are the conditions in a field's tags.
type demands struct {
	required bool    // a value must be given
	def      *string // replaces a missing value; nil if there is no default
	layout   string  // of a time; empty for RFC 3339
	checks   []check // for a value that is given
}

// A check is a condition on a value. If a value does not meet it, the client gets an [Error] with the reason and detail.
type check struct {
	reason error
	detail string
	ok     func(v reflect.Value) bool
}

var demandTags = []string{"required", "default", "layout", "min", "max", "len", "oneof"}

// hasDemands reports whether a field's tags state demands.
func hasDemands(tag reflect.StructTag) bool {
	return slices.ContainsFunc(demandTags, func(name string) bool {
		_, ok := tag.Lookup(name)
		return ok
	})
}

// demandsOf returns the demands of a field. A default stays a text, so that requests do not share the memory of its value.
func demandsOf(sf reflect.StructField, from Source) (d demands, err error) {
	if !hasDemands(sf.Tag) {
		return d, nil
	}
	word, required := sf.Tag.Lookup("required")
	if d.required = required; required && word != "true" && word != "nonempty" {
		return d, fmt.Errorf("has the tag required with %q, want true or nonempty", word)
	}
	if d.layout, err = layoutOf(sf, from); err != nil {
		return d, err
	}
	if text, ok := sf.Tag.Lookup("default"); ok {
		if required {
			return d, errors.New("a required field needs no default")
		}
		if _, err = parseTag(sf.Type, "default", text, d.layout); err != nil {
			return d, err
		}
		d.def = &text
	}
	target, _ := targetOf(sf.Type)
	d.checks, err = compileChecks(target, sf.Tag)
	return d, err
}

// parseTag converts the text of a tag to a value of type t.
func parseTag(t reflect.Type, tag, text, layout string) (reflect.Value, error) {
	if err := checkText(t); err != nil {
		return reflect.Value{}, err
	}
	v := reflect.New(t).Elem()
	if fault, cause := setText(v, text, layout); fault != "" {
		return reflect.Value{}, errors.Join(fmt.Errorf("the %s %q %s", tag, text, fault), cause)
	}
	return v, nil
}

// any reports whether there are demands.
func (d *demands) any() bool { return d.required || d.def != nil || d.checks != nil }

// failedBy returns the first check that v fails, or nil. It must not be called for null or a missing value.
func (d *demands) failedBy(v reflect.Value) *check {
	if d.checks == nil {
		return nil
	}
	v = target(v)
	for i := range d.checks {
		if c := &d.checks[i]; !c.ok(v) {
			return c
		}
	}
	return nil
}

// compileChecks returns the checks that a field's tags state for values of type t.
func compileChecks(t reflect.Type, tag reflect.StructTag) (checks []check, err error) {
	if tag.Get("required") == "nonempty" {
		if sizeUnit(t) == "" {
			return nil, fmt.Errorf("a %v can't have the tag required with nonempty", t)
		}
		checks = append(checks, check{ErrMissing, "must not be empty", func(v reflect.Value) bool { return v.Len() > 0 }})
	}
	for _, name := range demandTags[3:] {
		text, ok := tag.Lookup(name)
		if !ok {
			continue
		}
		c := check{reason: ErrInvalid}
		if name == "oneof" {
			c.detail, c.ok, err = compileOneOf(t, strings.Fields(text))
		} else {
			c.detail, c.ok, err = compileLimit(t, name, text)
		}
		if err != nil {
			return nil, err
		}
		checks = append(checks, c)
	}
	return checks, nil
}

// compileLimit compiles the tag min, max or len of a field of type t. detail is the text of an error if ok reports false.
func compileLimit(t reflect.Type, name, text string) (detail string, ok func(v reflect.Value) bool, err error) {
	words := map[string]string{"min": "at least ", "max": "at most ", "len": "exactly "}[name] + text
	switch unit := sizeUnit(t); {
	case unit != "":
		t, detail = reflect.TypeFor[uint](), "must have "+words+" "+unit
		if text != "1" {
			detail += "s"
		}
	case name == "len", t.Kind() < reflect.Int, t.Kind() > reflect.Float64:
		return "", nil, fmt.Errorf("a %v can't have the tag %s", t, name)
	default:
		detail = "must be " + words
	}
	limit, err := parseTag(t, name, text, "")
	return detail, func(v reflect.Value) bool {
		order, isNaN := compare(v, limit), v.CanFloat() && math.IsNaN(v.Float())
		return !isNaN && (order == 0 || name == "min" && order > 0 || name == "max" && order < 0)
	}, err
}

// sizeUnit returns the unit of a value's size, or "" if the type has no size.
func sizeUnit(t reflect.Type) string {
	switch k := t.Kind(); {
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

// compileOneOf compiles the tag oneof of a field of type t. detail is the text of an error if ok reports false.
func compileOneOf(t reflect.Type, words []string) (detail string, ok func(v reflect.Value) bool, err error) {
	switch k := t.Kind(); {
	case k != reflect.String && (k < reflect.Int || k > reflect.Uint64):
		return "", nil, fmt.Errorf("a %v can't have the tag oneof", t)
	case len(words) == 0:
		return "", nil, errors.New("has an empty tag oneof")
	}
	values := make([]reflect.Value, len(words))
	for i, word := range words {
		if values[i], err = parseTag(t, "oneof", word, ""); err != nil {
			return "", nil, err
		}
	}
	return "must be one of " + strings.Join(words, ", "), func(v reflect.Value) bool { return slices.ContainsFunc(values, v.Equal) }, nil
}
