package params

import (
	"cmp"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Fault returns an [*Error] that blames a field of v, a struct or a pointer to a struct that [Bind] or [JSON] has
// filled. It is for validation: the reason is [ErrInvalid], and the name is that of the parameter. The field is named as
// in Go, "Items[2].Price", and detail is a predicate, "must be positive". If v does not have the field, the error has
// the field's name.
func Fault(v any, field, detail string) *Error {
	from, at, ok := clientPath(reflect.TypeOf(v), field)
	if !ok {
		return &Error{Name: field, Reason: ErrInvalid, Detail: detail}
	}
	return placeError(ErrInvalid, from, at, detail)
}

// clientPath returns the source and the place of the parameter for the field at path in a struct.
func clientPath(t reflect.Type, path string) (from Source, at jsontext.Pointer, ok bool) {
	if t == nil {
		return "", "", false
	}
	t, _ = targetOf(t)
	_, err := rootOf(use{t, true})
	isBound := err == nil
	for name := range strings.SplitSeq(strings.ReplaceAll(path, "[", ".["), ".") {
		t, _ = targetOf(t)
		if key, ok := strings.CutPrefix(name, "["); ok {
			if key = strings.TrimSuffix(key, "]"); !hasElements(t, key) {
				return "", "", false
			}
			t, at = t.Elem(), at.AppendToken(key)
			continue
		}
		sf, ok := fieldNamed(t, name)
		if !ok {
			return "", "", false
		}
		t = sf.Type
		if from == "" {
			from, _, _ = sourceOf(sf, "")
			if from == "" && (isBound || sf.Anonymous) && canBeGroup(sf) {
				continue
			}
			from = cmp.Or(from, SourceJSON) // a type for JSON needs no tags
		}
		tag, _, _ := strings.Cut(sf.Tag.Get(string(from)), ",")
		if tag != "" || !sf.Anonymous {
			at = at.AppendToken(cmp.Or(tag, sf.Name))
		}
	}
	return from, at, true
}

func fieldNamed(t reflect.Type, name string) (sf reflect.StructField, ok bool) {
	if t.Kind() != reflect.Struct {
		return sf, false
	}
	return t.FieldByName(name)
}

// hasElements reports whether values of a type can have an element with this key or number.
func hasElements(t reflect.Type, key string) bool {
	_, err := strconv.Atoi(key)
	k := t.Kind()
	return k == reflect.Map || err == nil && (k == reflect.Slice || k == reflect.Array)
}
