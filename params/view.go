package params

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A View reads parameters from one source, or from several in the order path, body, query. An accessor returns
// an [*Error] with [ErrMissing] if no source has the name, and with [ErrMalformed] if its value has another
// type or is given more than once. An accessor with a default returns it only for a missing parameter. A JSON
// value must have the right type, so a number in a string is malformed for Int, and null for every accessor.
type View struct {
	params *Params
	from   kinds
}

// String returns the text of a parameter, which may be empty.
func (v View) String(name string) (string, error) { return get[string](v, name) }

// StringOr is String with a default.
func (v View) StringOr(name, def string) (string, error) { return get(v, name, def) }

// Int returns a whole number in decimal.
func (v View) Int(name string) (int, error) { return get[int](v, name) }

// IntOr is Int with a default.
func (v View) IntOr(name string, def int) (int, error) { return get(v, name, def) }

// Int64 returns a whole number in decimal.
func (v View) Int64(name string) (int64, error) { return get[int64](v, name) }

// Int64Or is Int64 with a default.
func (v View) Int64Or(name string, def int64) (int64, error) { return get(v, name, def) }

// Float returns a number that is neither infinite nor NaN.
func (v View) Float(name string) (float64, error) { return get[float64](v, name) }

// FloatOr is Float with a default.
func (v View) FloatOr(name string, def float64) (float64, error) { return get(v, name, def) }

// Bool returns true for the texts true, 1 and on, and false for false, 0 and off. A browser sends "on" for a
// checkbox.
func (v View) Bool(name string) (bool, error) { return get[bool](v, name) }

// BoolOr is Bool with a default.
func (v View) BoolOr(name string, def bool) (bool, error) { return get(v, name, def) }

// Strings returns all values of a parameter in their order. In JSON, the value is an array of strings. If the
// parameter is missing, Strings returns nil without an error.
func (v View) Strings(name string) ([]string, error) {
	f, err := v.find(name)
	if err != nil || f.count == 0 {
		return nil, err
	}
	if f.json != nil {
		return decodeJSONStrings(f.json, name)
	}
	return f.texts(name), nil
}

// found is the result of a search for a name in a source.
type found struct {
	from  Source
	count int        // number of values
	text  string     // the first value, unless it is JSON
	json  *jsonValue // the value in JSON
	pairs []pair     // contains the other values
	files []*File    // the values if they are files
}

// texts returns all values with the name.
func (f *found) texts(name string) []string {
	if f.count == 1 { // also in a path, which has no pairs
		return []string{f.text}
	}
	all := make([]string, 0, f.count)
	for _, p := range f.pairs {
		if p.name == name {
			all = append(all, p.value)
		}
	}
	return all
}

// get returns the single value of a parameter, or def if it is missing.
func get[T any](v View, name string, def ...T) (t T, err error) {
	f, err := v.find(name)
	switch {
	case err != nil:
		return t, err
	case f.count == 0 && len(def) > 0:
		return def[0], nil
	case f.count == 0:
		return t, newError(ErrMissing, v.source(), name, "is missing")
	case f.json != nil:
		return decodeJSONMember[T](f.json.raw, jsontext.Pointer("").AppendToken(name))
	case f.count > 1:
		return t, malformedError(f.from, name, givenTimesDetail(f.count))
	}
	if fault := setBasic(reflect.ValueOf(&t).Elem(), f.text, ""); fault != "" {
		return t, malformedError(f.from, name, fault)
	}
	return t, nil
}

func givenTimesDetail(n int) string { return "is given " + strconv.Itoa(n) + " times" }

var errNoParams = errors.New("params: a View must come from a Params")

// find searches the view's sources for a name, in their order.
func (v View) find(name string) (found, error) {
	if v.params == nil {
		return found{}, errNoParams
	}
	r, err := v.params.request()
	if err != nil {
		return found{}, err
	}
	if v.from&pathKind != 0 {
		if f, err := findPath(r, name); err != nil || f.count > 0 {
			return f, err
		}
	}
	// A view of the body alone reads it whatever the method.
	if v.from&contentKind != 0 && (v.from&queryKind == 0 || hasContent(r.Method)) {
		if f, err := v.findContent(r, name); err != nil || f.count > 0 {
			return f, err
		}
	}
	if v.from&queryKind != 0 {
		pairs, err := v.params.queryPairs(r)
		return findPair(pairs, name, SourceQuery), err
	}
	return found{}, nil
}

// findPath searches the route's wildcards. A wildcard that matched nothing has an empty value, so that no other
// source can replace it.
func findPath(r *http.Request, name string) (found, error) {
	value := r.PathValue(name)
	if value == "" && !isWildcard(r.Pattern, name) {
		return found{}, nil
	}
	if fault := textProblem(value); fault != "" {
		return found{}, malformedError(SourcePath, name, fault)
	}
	return found{from: SourcePath, count: 1, text: value}, nil
}

// isWildcard reports whether a pattern has a wildcard of that name. {$} is the end of the path.
func isWildcard(pattern, name string) bool {
	return name != "$" && (strings.Contains(pattern, "{"+name+"}") || strings.Contains(pattern, "{"+name+"...}"))
}

func (v View) findContent(r *http.Request, name string) (found, error) {
	want := v.from & contentKind
	if v.params.contentOf(r).kind&want != jsonKind {
		form, err := v.params.form(want)
		if err != nil {
			return found{}, err
		}
		return findPair(form.pairs, name, SourceForm), nil
	}
	object, err := v.params.jsonObject(want)
	return findMember(object, name), err
}

func findMember(object *jsonValue, name string) found {
	if object == nil {
		return found{}
	}
	v := object.member(name)
	if v == nil {
		return found{}
	}
	return found{from: SourceJSON, count: 1, json: v}
}

func findFiles(files []*File, name string) found {
	f := found{from: SourceForm}
	for _, file := range files {
		if file.Name == name {
			f.files = append(f.files, file)
		}
	}
	f.count = len(f.files)
	return f
}

func findPair(pairs []pair, name string, from Source) found {
	f := found{from: from, pairs: pairs}
	for i := range pairs {
		if p := &pairs[i]; p.name == name {
			if f.count++; f.count == 1 {
				f.text = p.value
			}
		}
	}
	return f
}

// source returns the view's source for a message, or "" if the view has several sources.
func (v View) source() Source {
	return map[kinds]Source{
		pathKind: SourcePath, queryKind: SourceQuery, formKind | multipartKind: SourceForm, jsonKind: SourceJSON, contentKind: SourceBody,
	}[v.from]
}
