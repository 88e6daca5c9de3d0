package params

import (
	"cmp"
	"errors"
	"fmt"
	"net/textproto"
	"reflect"
	"strings"
	"sync"
)

// A plan is how a struct is filled from a request, compiled once for its type.
type plan struct {
	singles []field // from the path, the header and the cookies
	query   []field
	form    []field
	json    *jsonPlan // nil for none

	// What of a JSON body goes to which field: if members is nil, json is the plan of the
	// struct itself, otherwise that of a struct whose field i is the one at members[i].
	members [][]int
}

// plans are the compiled ones, a *plan or an error for each type.
var plans sync.Map

// planOf returns the plan of t. Its error is a mistake in t.
func planOf(t reflect.Type) (*plan, error) {
	return loadOrCompile(&plans, t, func() (*plan, error) {
		pl, err := compile(t)
		if err != nil {
			return nil, fmt.Errorf("params: Bind of a %v: %w", t, err)
		}
		return pl, nil
	})
}

// loadOrCompile returns what known has for a type, a *P or an error, compiling it once.
func loadOrCompile[P any](known *sync.Map, t reflect.Type, compile func() (*P, error)) (*P, error) {
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

// A compiler makes a plan.
type compiler struct {
	plan
	json []reflect.StructField // the fields from JSON
}

func compile(t reflect.Type) (*plan, error) {
	if t.Kind() != reflect.Struct {
		return nil, errors.New("it is not a struct")
	}
	var c compiler
	if err := forEachField(t, nil, "", c.addField); err != nil {
		return nil, err
	}
	switch {
	case c.json == nil:
		return &c.plan, nil
	case c.form != nil:
		return nil, errors.New("it has fields from a form and from JSON, but a body cannot be both")
	case hasOnlyJSONFields(t):
		c.members = nil
	default:
		t = reflect.StructOf(c.json)
	}
	var err error
	c.plan.json, err = compileJSON(t)
	return &c.plan, err
}

// addField compiles a field with the source that its tag names.
func (c *compiler) addField(sf reflect.StructField, from Source, tag string, index []int) error {
	if from == SourceJSON {
		c.addJSONField(sf, tag, index)
		return nil
	}
	f, err := fieldCompiler{from: from, structs: map[reflect.Type]*[]field{}}.compileField(sf, tag, index)
	to := &c.singles
	switch {
	case err != nil:
		return err
	case from == SourceHeader:
		f.name = textproto.CanonicalMIMEHeaderKey(f.name)
	case from == SourceQuery:
		to = &c.query
	case from == SourceForm:
		to = &c.form
	case f.many:
		return fmt.Errorf("a %s has no list of values", from)
	}
	return addField(to, f)
}

// forEachField calls add with the fields of a struct, and of those in it that have no tag. A
// tag has to name the source only, or if that is "", any.
func forEachField(t reflect.Type, index []int, only Source, add func(sf reflect.StructField, from Source, tag string, index []int) error) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		from, tag, err := sourceOf(sf, only)
		switch {
		case err != nil:
		case from == "" && (sf.Tag.Get("params") == "-" || only != "" && sf.Tag.Get(string(only)) == "-"):
		case from != "" && !sf.IsExported():
			err = errors.New("is not exported")
		case from != "":
			err = add(sf, from, tag, at)
		case isGroup(sf):
			if err = refuseDemands(sf); err != nil {
				break
			}
			err = forEachField(sf.Type, at, only, add)
		case sf.IsExported():
			err = fmt.Errorf(`has no tag %s; params:"-" leaves it out`, cmp.Or(only, "of a source"))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", sf.Name, err)
		}
	}
	return nil
}

// hasOnlyJSONFields reports whether all that package json would set in a struct has a tag for JSON.
func hasOnlyJSONFields(t reflect.Type) bool {
	for i := range t.NumField() {
		sf := t.Field(i)
		if from, _, _ := sourceOf(sf, ""); from != SourceJSON && (sf.IsExported() || sf.Anonymous) {
			return false
		}
	}
	return true
}

// isGroup reports whether the fields of a field without a tag are taken for the outer
// struct's.
func isGroup(sf reflect.StructField) bool {
	return sf.Type.Kind() == reflect.Struct && (sf.IsExported() || sf.Anonymous) && sf.Type != timeType && !isOpt(sf.Type)
}

func isOpt(t reflect.Type) bool { _, ok := optInnerType(t); return ok }

// tagged are the sources that a tag can name.
var tagged = []Source{SourcePath, SourceQuery, SourceForm, SourceJSON, SourceHeader, SourceCookie}

// sourceOf returns the source that a field's tags name, or "": any one, or the only one.
func sourceOf(sf reflect.StructField, only Source) (from Source, tag string, err error) {
	for _, s := range tagged {
		t, ok := sf.Tag.Lookup(string(s))
		switch {
		case !ok || t == "-", only != "" && s != only:
		case from != "":
			return "", "", fmt.Errorf("names two sources, %s and %s", from, s)
		default:
			from, tag = s, t
		}
	}
	return from, tag, nil
}

// addJSONField adds a field from JSON. In the struct of them all its name in Go is another, as
// fields of several groups can have the same.
func (c *compiler) addJSONField(sf reflect.StructField, tag string, index []int) {
	name, options, _ := strings.Cut(tag, ",")
	own := fmt.Sprintf("json:%q ", cmp.Or(name, sf.Name)+","+options)
	if options == "" {
		own = fmt.Sprintf("json:%q ", cmp.Or(name, sf.Name))
	}
	c.json = append(c.json, reflect.StructField{
		Name: fmt.Sprintf("%s_%d", sf.Name, len(c.json)), Type: sf.Type, Tag: reflect.StructTag(own) + sf.Tag,
	})
	c.members = append(c.members, index)
}
