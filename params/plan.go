package params

import (
	"errors"
	"fmt"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A plan is how a struct is filled from a request, compiled once for its type.
type plan struct {
	path, header, cookie []textField
	query, form          *pairPlan // nil for none
	json                 *jsonPlan
}

// A textField is a field that texts go into.
type textField struct {
	name     string
	index    []int
	set      setter
	many     bool // it is a slice, and set is for an element
	required bool
	def      reflect.Value // the zero Value for none
}

// plans are the compiled ones, a *plan or an error for each type.
var plans sync.Map

// planOf returns the plan of t. Its error is a mistake in t.
func planOf(t reflect.Type) (*plan, error) {
	return compiled(&plans, t, func() (*plan, error) {
		pl := new(plan)
		if err := pl.compile(t); err != nil {
			return nil, fmt.Errorf("params: Bind of a %v: %w", t, err)
		}
		return pl, nil
	})
}

// compiled returns what known has for a type, a *P or an error, compiling it once.
func compiled[P any](known *sync.Map, t reflect.Type, compile func() (*P, error)) (*P, error) {
	have, ok := known.Load(t)
	if !ok {
		p, err := compile()
		if have = p; err != nil {
			have = err
		}
		have, _ = known.LoadOrStore(t, have)
	}
	if err, ok := have.(error); ok {
		return nil, err
	}
	return have.(*P), nil
}

func (pl *plan) compile(t reflect.Type) error {
	if t.Kind() != reflect.Struct {
		return errors.New("it is no struct")
	}
	m := jsonCompiler{}
	switch err := pl.group(t, nil, m); {
	case err != nil, pl.json == nil:
		return err
	case pl.form != nil:
		return errors.New("it has fields from a form and from JSON, and a body can't be both")
	}
	pl.json.typ, pl.json.decode = t, (*jsonDecoder).object
	if !pl.json.setFields(pl.json.fields) {
		return errors.New("two fields have the same name in JSON")
	}
	whole, err := m.check()
	if err != nil {
		return err
	}
	all, err := m.plan(t) // as package json sees it, which knows only the tag json
	pl.json.whole = whole && !pl.json.demands && err == nil && slices.EqualFunc(all.fields, pl.json.fields, func(a, b jsonField) bool {
		return a.name == b.name && slices.Equal(a.index, b.index)
	})
	return nil
}

// group compiles the fields of a struct, and of those in it that have no tag.
func (pl *plan) group(t reflect.Type, index []int, m jsonCompiler) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		from, tag, err := sourceOf(sf)
		switch {
		case err != nil:
		case from == "" && sf.Tag.Get("params") == "-":
		case from != "" && !sf.IsExported():
			err = errors.New("is not exported")
		case from != "":
			err = pl.field(sf, from, tag, at, m)
		case sf.Type.Kind() == reflect.Struct && (sf.IsExported() || sf.Anonymous) && sf.Type != timeType && !isOpt(sf.Type):
			err = pl.group(sf.Type, at, m)
		case sf.IsExported():
			err = errors.New(`names no source; params:"-" leaves it out`)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", sf.Name, err)
		}
	}
	return nil
}

func isOpt(t reflect.Type) bool { _, ok := innerOf(t); return ok }

// tagged are the sources that a tag can name.
var tagged = []Source{SourcePath, SourceQuery, SourceForm, SourceJSON, SourceHeader, SourceCookie}

// sourceOf returns the one source that a field's tags name, or "".
func sourceOf(sf reflect.StructField) (from Source, tag string, err error) {
	for _, s := range tagged {
		t, ok := sf.Tag.Lookup(string(s))
		switch {
		case !ok || t == "-":
		case from != "":
			return "", "", fmt.Errorf("names two sources, %s and %s", from, s)
		default:
			from, tag = s, t
		}
	}
	return from, tag, nil
}

// field compiles a field with its source.
func (pl *plan) field(sf reflect.StructField, from Source, tag string, index []int, m jsonCompiler) error {
	switch from {
	case SourceJSON:
		name, plain := jsonName(tag)
		if !plain {
			return fmt.Errorf("the tag %q has quotes or options that are not supported", tag)
		}
		if pl.json == nil {
			pl.json = &jsonPlan{}
		}
		f, err := m.field(sf, name, index)
		pl.json.fields = append(pl.json.fields, f)
		return err
	case SourceQuery, SourceForm:
		pp := &pl.query
		if from == SourceForm {
			pp = &pl.form
		}
		if *pp == nil {
			*pp = &pairPlan{from: from}
		}
		return pairCompiler{}.field(*pp, sf, tag, "", index)
	}
	f, err := textFieldOf(sf, tag, index)
	if err != nil {
		return err
	}
	switch from {
	case SourcePath:
		pl.path = append(pl.path, f)
	case SourceCookie:
		pl.cookie = append(pl.cookie, f)
	case SourceHeader:
		f.name = textproto.CanonicalMIMEHeaderKey(f.name)
		pl.header = append(pl.header, f)
	}
	if f.many && from != SourceHeader {
		return fmt.Errorf("a %s has no list of values", from)
	}
	return nil
}

// textFieldOf compiles a field whose values are texts.
func textFieldOf(sf reflect.StructField, tag string, index []int) (f textField, err error) {
	if err := checkName(tag); err != nil {
		return f, err
	}
	f = textField{name: tag, index: index}
	t := sf.Type
	if f.many = isList(t); f.many {
		if t = t.Elem(); t.Kind() == reflect.Uint8 {
			return f, errors.New("no text can be bytes; use a string")
		}
	}
	if f.set, err = setterOf(t); err != nil {
		return f, err
	}
	f.required, f.def, err = demandOf(sf)
	return f, err
}

// checkName refuses a tag that names nothing, and one with what other packages have as
// options.
func checkName(tag string) error {
	switch {
	case tag == "":
		return errors.New("has a tag without a name")
	case strings.Contains(tag, ","):
		return fmt.Errorf("has a comma in the tag %q", tag)
	}
	return nil
}

// isList says whether a field takes all values of a name.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && !reflect.PointerTo(t).Implements(unmarshalText)
}
