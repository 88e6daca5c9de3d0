package params

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Fault returns the [*Error] that blames a field of v, a struct or a pointer to one
// that Bind or JSON has filled, for validation: its reason is [ErrInvalid], and its
// name that of the parameter. The field is named as in Go, "Items[2].Price", and
// detail is a predicate, "must be positive". A field that v doesn't have is named as
// it is.
func Fault(v any, field, detail string) *Error {
	e := &Error{Name: field, Reason: ErrInvalid, Detail: detail}
	t := reflect.TypeOf(v)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	w := walk{}
	if t != nil {
		_, err := planOf(t)
		w.grouped = err == nil
	}
	for name := range strings.SplitSeq(strings.ReplaceAll(field, "[", ".["), ".") {
		if t = w.step(t, name); t == nil {
			return e
		}
	}
	found := jsonError(ErrInvalid, w.at, detail)
	if found.Source = w.from; w.from != SourceJSON {
		found.pointer = ""
	}
	return found
}

// A walk goes from a struct to a value in it, noting how a client calls the way.
type walk struct {
	grouped bool // the struct is one for Bind, where those in it without a tag are groups
	from    Source
	at      jsontext.Pointer
}

// step goes to a field, or to an element, "[2]", and returns its type; nil if there
// is none.
func (w *walk) step(t reflect.Type, name string) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return nil
	}
	if inner, ok := innerOf(t); ok {
		t = inner
	}
	if key, ok := strings.CutPrefix(name, "["); ok {
		return w.element(t, strings.TrimSuffix(key, "]"))
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	sf, ok := t.FieldByName(name)
	if !ok {
		return nil
	}
	if tag := w.name(sf); tag != "" {
		w.at = w.at.AppendToken(tag)
	}
	return sf.Type
}

func (w *walk) element(t reflect.Type, key string) reflect.Type {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if _, err := strconv.Atoi(key); err != nil {
			return nil
		}
	case reflect.Map:
	default:
		return nil
	}
	w.at = w.at.AppendToken(key)
	return t.Elem()
}

// name is what a client calls a field, "" for a group, whose fields are the outer
// one's.
func (w *walk) name(sf reflect.StructField) string {
	if w.from == "" {
		from, _, _ := sourceOf(sf)
		if from == "" && (w.grouped || sf.Anonymous) && sf.Type.Kind() == reflect.Struct && sf.Type != timeType && !isOpt(sf.Type) {
			return ""
		}
		if w.from = from; from == "" {
			w.from = SourceJSON // of a type without tags, for JSON
		}
	}
	name, _, _ := strings.Cut(sf.Tag.Get(string(w.from)), ",")
	if name == "" && !sf.Anonymous {
		name = sf.Name
	}
	return name
}
