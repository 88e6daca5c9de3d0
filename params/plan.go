package params

import (
	"cmp"
	"errors"
	"fmt"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A plan describes how values of a type are filled from a source. It is compiled once for the type.
type plan struct {
	typ     reflect.Type
	isText  bool    // the value is set from a text
	elem    *plan   // of what a pointer, list, array, map or Opt contains
	fields  []field // of a struct
	whole   bool    // package json decodes the type as a whole
	demands bool    // package json can't decode the type alone, because a field in it has demands
}

// A root is the plan of a struct for [Bind], or of a type for JSON.
type root struct {
	json    *plan              // of a type for JSON, or of the fields that Bind fills from JSON
	sources map[Source][]field // of a struct for Bind
	order   []Source           // the keys of sources, in the order of reading
}

// A field is a field of a struct that is filled from one source.
type field struct {
	from  Source
	name  string
	index []int
	plan  *plan
	demands
}

var fileType = reflect.TypeFor[*File]()

// A use is a type and the function that fills it: Bind or a JSON decoder.
type use struct {
	typ    reflect.Type
	isBind bool
}

// roots is a cache. It maps a use to its *root, or to the error about the type.
var roots sync.Map

// rootOf returns the root of a type. It compiles it once. It returns an error if the type has a mistake.
func rootOf(u use) (*root, error) {
	have, ok := roots.Load(u)
	if !ok {
		name, compile := "JSON into", compileForJSON
		if u.isBind {
			name, compile = "Bind of", compileForBind
		}
		r, err := compile(u.typ)
		if have = r; err != nil {
			have = fmt.Errorf("params: %s a %v: %w", name, u.typ, err)
		}
		have, _ = roots.LoadOrStore(u, have)
	}
	if err, ok := have.(error); ok {
		return nil, err
	}
	return have.(*root), nil
}

func compileForJSON(t reflect.Type) (*root, error) {
	c := newCompiler(SourceJSON)
	p, err := c.planFor(t)
	if err != nil {
		return nil, err
	}
	return &root{json: p}, c.finish()
}

func compileForBind(t reflect.Type) (*root, error) {
	if t.Kind() != reflect.Struct {
		return nil, errors.New("it is not a struct")
	}
	r := &root{sources: map[Source][]field{}}
	fromJSON := newCompiler(SourceJSON)
	err := forEachField(t, nil, func(sf reflect.StructField, index []int) (isGroup bool, err error) {
		from, tag, isGroup, err := classify(sf, "")
		if from == "" {
			return isGroup, err
		}
		c := fromJSON
		if from != SourceJSON {
			c = newCompiler(from)
		}
		r.sources[from], err = c.addField(r.sources[from], sf, tag, index)
		return false, err
	})
	switch {
	case err != nil:
		return nil, err
	case r.sources[SourceForm] != nil && r.sources[SourceJSON] != nil:
		return nil, errors.New("it has fields from a form and from JSON, but a body cannot be both")
	}
	for _, from := range allSources {
		if r.sources[from] != nil {
			r.order = append(r.order, from)
		}
	}
	err = fromJSON.finish()
	r.json = &plan{typ: t, fields: r.sources[SourceJSON]}
	isInGroup := func(f field) bool { return len(f.index) > 1 }
	isAll := len(r.json.fields) == t.NumField() && !slices.ContainsFunc(r.json.fields, isInGroup)
	r.json.demands = !isAll || decodesItself(t) || r.json.hasDemands(map[*plan]bool{})
	return r, err
}

// A compiler compiles types for one source. It holds the plans that are being compiled, because a type may contain
// itself.
type compiler struct {
	from  Source
	plans map[reflect.Type]*plan
}

func newCompiler(from Source) compiler { return compiler{from, map[reflect.Type]*plan{}} }

func (c compiler) planFor(t reflect.Type) (*plan, error) {
	if p := c.plans[t]; p != nil {
		return p, nil
	}
	if _, ends := targetOf(t); !ends {
		return nil, fmt.Errorf("a %v points to itself without end", t)
	}
	p := &plan{typ: t}
	c.plans[t] = p
	if c.from == SourceJSON {
		return p, c.compileJSON(p)
	}
	return p, c.compileText(p)
}

// compileText compiles a type that is filled from texts, files or, if it contains a struct, pairs with names like
// "items.0.price".
func (c compiler) compileText(p *plan) (err error) {
	t, k := p.typ, p.typ.Kind()
	if err = checkText(t); err == nil {
		p.isText = true
		return nil
	}
	_, isOpt := optInnerType(t)
	switch {
	case t == fileType && c.from != SourceForm:
		return errors.New("a file is a field of a form")
	case t == fileType:
		return nil
	case isList(t) && !isList(t.Elem()) && c.from != SourcePath && c.from != SourceCookie,
		k == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		p.elem, err = c.planFor(t.Elem())
	case k == reflect.Struct && !isOpt && c.hasNames():
		err = forEachField(t, nil, func(sf reflect.StructField, index []int) (bool, error) {
			from, tag, isGroup, err := classify(sf, c.from)
			if from == "" {
				return isGroup, err
			}
			p.fields, err = c.addField(p.fields, sf, tag, index)
			if err == nil && c.plans[fileType] != nil {
				err = errors.New("a file is a field of a form, and not of a struct in it")
			}
			return false, err
		})
	}
	return err
}

// hasNames reports whether the client chooses the names in the source. Such names can lead into structs.
func (c compiler) hasNames() bool { return c.from == SourceQuery || c.from == SourceForm }

// isList reports whether a field of type t takes all values of a name.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !decodesText(t)
}

// inner returns the plan of the values in lists and behind pointers.
func (p *plan) inner() *plan {
	for p.elem != nil {
		p = p.elem
	}
	return p
}

func (p *plan) isFile() bool { return p.inner().typ == fileType }

// isStruct reports whether a type that is not for JSON is filled from several parameters.
func (p *plan) isStruct() bool {
	p = p.inner()
	return !p.isText && p.typ.Kind() == reflect.Struct
}

// addField compiles a field of a struct for Bind, or of a struct that is filled from texts. It returns an error if
// another field takes the values of its parameter.
func (c compiler) addField(fields []field, sf reflect.StructField, tag string, index []int) ([]field, error) {
	f, err := c.compileField(sf, tag, index)
	isSame := func(g field) bool { return g.name == f.name }
	switch isJSON := c.from == SourceJSON; {
	case err != nil:
	case isJSON && !isPlain(tag), !isJSON && (tag == "" || strings.Contains(tag, ",")): // a text has no options
		err = fmt.Errorf("has the tag %q, want a name without these options", tag)
	case !isJSON && f.demands.any() && f.plan.isStruct():
		err = errors.New("a struct can't be required or have a default, and a list of structs can't be checked by a tag")
	case !isJSON && f.checks != nil && c.plans[fileType] != nil:
		err = errors.New("a file can't be checked by a tag")
	case (isJSON || c.hasNames()) && slices.ContainsFunc(fields, isSame):
		err = fmt.Errorf("the %s parameter %q has a field already", c.from, f.name)
	}
	return append(fields, f), err
}

func (c compiler) compileField(sf reflect.StructField, tag string, index []int) (f field, err error) {
	f = field{from: c.from, name: tag, index: index}
	switch c.from {
	case SourceJSON:
		name, _, _ := strings.Cut(tag, ",")
		f.name = cmp.Or(name, sf.Name)
	case SourceHeader:
		f.name = textproto.CanonicalMIMEHeaderKey(tag)
	}
	if f.plan, err = c.planFor(sf.Type); err == nil {
		f.demands, err = demandsOf(sf, c.from)
	}
	return f, err
}
