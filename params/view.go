package params

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A View reads parameters from one source, or from several in the order path,
// body, query. An accessor returns an [*Error] with [ErrMissing] if the name isn't
// there, and with [ErrMalformed] if its value is of another type or given more than
// once. An accessor with a default returns that only for a missing parameter. Text
// is converted as documented; a JSON value must have the right type already, and null
// is no value of any type.
type View struct {
	params *Params
	from   kinds
}

// String returns the text of a parameter, which may be empty.
func (v View) String(name string) (string, error) { return get(v, name, parseString) }

// StringOr is String with a default for a missing parameter.
func (v View) StringOr(name, def string) (string, error) { return getOr(v, name, def, parseString) }

// Int returns a whole number in decimal.
func (v View) Int(name string) (int, error) { return get(v, name, parseNumber) }

// IntOr is Int with a default for a missing parameter.
func (v View) IntOr(name string, def int) (int, error) { return getOr(v, name, def, parseNumber) }

// Int64 returns a whole number in decimal.
func (v View) Int64(name string) (int64, error) { return get(v, name, parseInt) }

// Int64Or is Int64 with a default for a missing parameter.
func (v View) Int64Or(name string, def int64) (int64, error) { return getOr(v, name, def, parseInt) }

// Float returns a number that is neither infinite nor NaN.
func (v View) Float(name string) (float64, error) { return get(v, name, parseFloat64) }

// FloatOr is Float with a default for a missing parameter.
func (v View) FloatOr(name string, def float64) (float64, error) {
	return getOr(v, name, def, parseFloat64)
}

// Bool returns whether a parameter is true, from the texts true, 1 and on, or
// false, 0 and off: "on" is what a browser sends for a checkbox.
func (v View) Bool(name string) (bool, error) { return get(v, name, parseBool) }

// BoolOr is Bool with a default for a missing parameter.
func (v View) BoolOr(name string, def bool) (bool, error) { return getOr(v, name, def, parseBool) }

// Time returns an RFC 3339 time, such as 2006-01-02T15:04:05Z, with T and Z in upper case.
// A leap second, which Go has no time for, is malformed. In a query the plus sign of a
// zone must be written %2B. In JSON it is a string.
func (v View) Time(name string) (time.Time, error) { return get(v, name, parseTime) }

// TimeOr is Time with a default for a missing parameter.
func (v View) TimeOr(name string, def time.Time) (time.Time, error) {
	return getOr(v, name, def, parseTime)
}

// Strings returns all values of a parameter that may be given more than once, in their
// order; in JSON, an array of strings. For none it returns nil without an error.
func (v View) Strings(name string) ([]string, error) {
	f, err := v.find(name)
	if err != nil || f.count == 0 {
		return nil, err
	}
	if f.raw != nil {
		return decodeJSONStrings(f.raw, name)
	}
	return f.texts(name), nil
}

// A found is the value, or the values, that a source has under a name.
type found struct {
	from  Source
	count int            // 0 means none
	text  string         // the first, unless it is JSON
	raw   jsontext.Value // in JSON
	pairs []pair         // with the others
}

// texts returns all values that were given under name.
func (f *found) texts(name string) []string {
	all := make([]string, 0, f.count)
	for _, p := range f.pairs {
		if p.name == name {
			all = append(all, p.value)
		}
	}
	return all
}

func get[T any](v View, name string, parse func(string) (T, string)) (T, error) {
	t, ok, err := lookup(v, name, parse)
	if err == nil && !ok {
		err = missingError(v.source(), name)
	}
	return t, err
}

func getOr[T any](v View, name string, def T, parse func(string) (T, string)) (T, error) {
	t, ok, err := lookup(v, name, parse)
	if err == nil && !ok {
		return def, nil
	}
	return t, err
}

// lookup finds the single value of a name, parsing a text.
func lookup[T any](v View, name string, parse func(string) (T, string)) (t T, ok bool, err error) {
	f, err := v.find(name)
	if err != nil || f.count == 0 {
		return t, false, err
	}
	if f.count > 1 {
		return t, false, malformedError(f.from, name, givenTimesDetail(f.count))
	}
	if f.raw != nil {
		t, err = decodeJSONMember[T](f.raw, name)
		return t, err == nil, err
	}
	t, fault := parse(f.text)
	if fault != "" {
		var zero T
		return zero, false, malformedError(f.from, name, fault)
	}
	return t, true, nil
}

func givenTimesDetail(n int) string { return "is given " + strconv.Itoa(n) + " times" }

// find looks a name up in the view's sources, in their order.
func (v View) find(name string) (found, error) {
	if v.params == nil {
		return found{}, errNoParams
	}
	r, err := v.params.request()
	if err != nil {
		return found{}, err
	}
	if v.from&pathKind != 0 {
		switch f, err := findPath(r, name); {
		case err != nil:
			return found{}, err
		case f.count > 0:
			return f, nil
		}
	}
	// Among several sources the body counts if the method gives it a meaning; a view of
	// the body alone always reads it.
	if v.from&anyKind != 0 && (v.from&^anyKind == 0 || hasContent(r.Method)) {
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

var errNoParams = errors.New("params: a View must come from a Params")

func (v View) findContent(r *http.Request, name string) (found, error) {
	want := v.from & anyKind
	if v.params.contentOf(r).kind&want != jsonKind {
		pairs, err := v.params.formPairs(r, want)
		return findPair(pairs, name, SourceForm), err
	}
	b, err := v.params.body(want)
	if err != nil {
		return found{}, err
	}
	b.parseJSON.Do(func() { b.members, b.membersErr = membersOf(b.raw, v.params.budgets.forRequest(r)) })
	if raw, ok := b.members[name]; ok {
		return found{from: SourceJSON, count: 1, raw: raw}, nil
	}
	return found{}, b.membersErr
}

// formPairs returns the pairs of a form, if the body is of a wanted kind.
func (p *Params) formPairs(r *http.Request, want kinds) ([]pair, error) {
	if c := p.contentOf(r); !c.none && c.kind == multipartKind && want&multipartKind != 0 {
		u, err := p.upload(r)
		if err != nil {
			return nil, err
		}
		return u.pairs, nil
	}
	b, err := p.body(want)
	if err != nil {
		return nil, err
	}
	return b.form, b.formErr
}

func findPair(pairs []pair, name string, from Source) found {
	f := found{from: from, pairs: pairs}
	for i := range pairs {
		if p := &pairs[i]; len(p.name) == len(name) && p.name == name {
			if f.count++; f.count == 1 {
				f.text = p.value
			}
		}
	}
	return f
}

// source returns the one source of the view, for a message.
func (v View) source() Source {
	return map[kinds]Source{
		pathKind: SourcePath, queryKind: SourceQuery, formKind | multipartKind: SourceForm, jsonKind: SourceJSON, contentKind: SourceBody,
	}[v.from]
}
