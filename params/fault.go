package params

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Fault returns an [*Error] that blames a field of v, a struct or a pointer to one
// that [Bind] or [JSON] has filled, for validation: its reason is [ErrInvalid], and its
// name that of the parameter. The field is named as in Go, "Items[2].Price", and
// detail is a predicate, "must be positive". A field that v doesn't have is named as
// it is.
func Fault(v any, field, detail string) *Error {
	from, at, ok := clientPath(reflect.TypeOf(v), field)
	if !ok {
		return &Error{Name: field, Reason: ErrInvalid, Detail: detail}
	}
	e := jsonError(ErrInvalid, at, detail)
	if e.Source = from; from != SourceJSON {
		e.pointer = ""
	}
	return e
}

// clientPath returns how a client calls the field that path leads to from a struct.
func clientPath(t reflect.Type, path string) (from Source, at jsontext.Pointer, ok bool) {
	root := targetOf(t)
	if root == nil {
		return "", "", false
	}
	_, err := planOf(root)
	bound := err == nil
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
			if from == "" && (bound || sf.Anonymous) && isGroup(sf) {
				continue // its fields are the outer struct's
			}
		}
		if from == "" {
			from = SourceJSON // of a type without tags, for JSON
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
