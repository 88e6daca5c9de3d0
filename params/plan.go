package params

import (
	"errors"
	"fmt"
	"net/textproto"
	"reflect"
	"strings"
	"sync"
)

// A plan is how a struct is filled from a request, compiled once for its type.
type plan struct {
	path, header, cookie []textField
	query, form          *pairPlan // nil for none
	json                 *structCodec
	doc                  *codec // of json
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
	known, ok := plans.Load(t)
	if !ok {
		pl := new(plan)
		known = pl
		if err := pl.compile(t); err != nil {
			known = fmt.Errorf("params: Bind of a %v: %w", t, err)
		}
		known, _ = plans.LoadOrStore(t, known)
	}
	if err, ok := known.(error); ok {
		return nil, err
	}
	return known.(*plan), nil
}

func (pl *plan) compile(t reflect.Type) error {
	if t.Kind() != reflect.Struct {
		return errors.New("it is no struct")
	}
	var members []jsonField
	if err := pl.group(t, nil, &members); err != nil {
		return err
	}
	if members == nil {
		return nil
	}
	if pl.form != nil {
		return errors.New("it has fields from a form and from JSON, and a body can't be both")
	}
	if pl.json = newStructCodec(members); pl.json == nil || len(members) > mostFields {
		return errors.New("two fields have the same name in JSON, or there are too many")
	}
	pl.doc = &codec{pl.json.decode, func(d *decoder, _ reflect.Value) error {
		return d.refuse("must be an object, not null", nil)
	}}
	return nil
}

// group compiles the fields of a struct, and of those in it that have no tag.
func (pl *plan) group(t reflect.Type, index []int, members *[]jsonField) error {
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
			err = pl.field(sf, from, tag, at, members)
		case sf.Type.Kind() == reflect.Struct && (sf.IsExported() || sf.Anonymous) && sf.Type != timeType && !isOpt(sf.Type):
			err = pl.group(sf.Type, at, members)
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
func (pl *plan) field(sf reflect.StructField, from Source, tag string, index []int, members *[]jsonField) error {
	name, options, _ := strings.Cut(tag, ",")
	switch from {
	case SourceJSON:
		if hasOption(options, "string") {
			return errors.New("the option string is not supported")
		}
		f, err := make(compiler).jsonField(sf, name, options, index)
		*members = append(*members, f)
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
	name, options, _ := strings.Cut(tag, ",")
	if name == "" {
		return f, errors.New("has a tag without a name")
	}
	f = textField{name: name, index: index, required: hasOption(options, "required")}
	t := sf.Type
	if f.many = isList(t); f.many {
		if t = t.Elem(); t.Kind() == reflect.Uint8 {
			return f, errors.New("no text can be bytes; use a string")
		}
	}
	if f.set, err = setterOf(t); err != nil {
		return f, err
	}
	if f.def, err = defaultOf(sf); err == nil && f.required && f.def.IsValid() {
		err = errDefaultRequired
	}
	return f, err
}

// isList says whether a field takes all values of a name.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && !reflect.PointerTo(t).Implements(unmarshalText)
}
