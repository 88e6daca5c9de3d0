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
	_, err := rootOf(use{targetOf(t), true})
	isBound := err == nil
	for name := range strings.SplitSeq(strings.ReplaceAll(path, "[", ".["), ".") {
		t = targetOf(t)
		if key, ok := strings.CutPrefix(name, "["); ok {
			key = strings.TrimSuffix(key, "]")
			_, err := strconv.Atoi(key)
			isList := t.Kind() == reflect.Slice || t.Kind() == reflect.Array
			if t.Kind() != reflect.Map && (!isList || err != nil) {
				return "", "", false
			}
			t, at = t.Elem(), at.AppendToken(key)
			continue
		}
		if t.Kind() != reflect.Struct {
			return "", "", false
		}
		sf, ok := t.FieldByName(name)
		if !ok {
			return "", "", false
		}
		t = sf.Type
		if from == "" {
			from, _, _ = sourceOf(sf, "")
			if from == "" && (isBound || sf.Anonymous) && canBeGroup(sf) {
				continue // a group
			}
			from = cmp.Or(from, SourceJSON) // a type for JSON needs no tags
		}
		tag, _, _ := strings.Cut(sf.Tag.Get(string(from)), ",")
		if tag == "" && !sf.Anonymous {
			tag = sf.Name
		}
		if tag != "" {
			at = at.AppendToken(tag)
		}
	}
	return from, at, true
}
