package params

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A field is a field of a struct that is filled from a source other than JSON: with texts,
// with files, or if it is a struct itself, with parameters that have names like
// "address.city", and in a slice of structs like "items.0.price".
type field struct {
	from   Source
	name   string
	index  []int
	many   bool     // it is a slice
	set    setter   // of a text
	inner  *[]field // of a struct
	prefix string   // of the names of inner
	demands
}

var fileType = reflect.TypeFor[*File]()

// isFile reports whether f is for files.
func (f *field) isFile() bool { return f.set == nil && f.inner == nil }

// addField adds a field, unless another one takes all values of its parameter.
func addField(to *[]field, f field) error {
	isSame := func(g field) bool { return g.name == f.name }
	if (f.from == SourceQuery || f.from == SourceForm) && slices.ContainsFunc(*to, isSame) {
		return fmt.Errorf("the %s parameter %q has a field already", f.from, f.name)
	}
	*to = append(*to, f)
	return nil
}

// match reports whether a parameter is for f, and if f is a struct, for what in it: the
// rest of the name, and the number of the element.
func (f *field) match(name string) (number int, rest string, ok bool) {
	if f.inner == nil {
		return 0, "", name == f.name
	}
	if rest, ok = strings.CutPrefix(name, f.prefix); !f.many || !ok {
		return 0, rest, ok
	}
	digits, rest, ok := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), rest, ok && err == nil && (digits[0] != '0' || digits == "0") // one way to write a number
}

// A fieldCompiler holds the structs that are being compiled: a type may occur within itself.
type fieldCompiler struct {
	from    Source
	structs map[reflect.Type]*[]field
}

// compileField compiles a field with the tag of its source.
func (c fieldCompiler) compileField(sf reflect.StructField, tag string, index []int) (f field, err error) {
	switch {
	case tag == "":
		return f, errors.New("has a tag without a name")
	case strings.Contains(tag, ","): // what other packages have as options
		return f, fmt.Errorf("has a comma in the tag %q", tag)
	}
	f = field{from: c.from, name: tag, index: index}
	t := sf.Type
	if f.many = isList(t); f.many {
		t = t.Elem()
	}
	if f.demands, err = demandsOf(sf); err != nil {
		return f, err
	}
	switch {
	case t != fileType:
	case c.from != SourceForm:
		return f, errors.New("a file is a field of a form")
	case f.checks != nil:
		return f, errors.New("a file can't be checked by a tag")
	default:
		return f, nil
	}
	if f.set, err = setterOf(t); err == nil {
		if f.many && t.Kind() == reflect.Uint8 {
			return f, errors.New("a text cannot become bytes; use a string")
		}
		return f, nil
	}
	if !f.many && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() != reflect.Struct, isOpt(t), c.from != SourceQuery && c.from != SourceForm:
		return f, fmt.Errorf("a text cannot become a %v", sf.Type)
	case f.demands.any():
		return f, errors.New("a struct can't be required or have a default, and a list of structs can't be checked by a tag")
	}
	f.set, f.prefix = nil, tag+"."
	f.inner, err = c.compileStruct(t)
	return f, err
}

// isList reports whether a field takes all values of a name.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && !decodesText(t)
}

// compileStruct compiles the fields of a struct whose field has a tag: all of them have one of
// the same source.
func (c fieldCompiler) compileStruct(t reflect.Type) (*[]field, error) {
	if fields := c.structs[t]; fields != nil {
		return fields, nil
	}
	fields := new([]field)
	c.structs[t] = fields
	return fields, c.compileFields(fields, t)
}

func (c fieldCompiler) compileFields(to *[]field, t reflect.Type) error {
	return forEachField(t, nil, c.from, func(sf reflect.StructField, _ Source, tag string, index []int) error {
		f, err := c.compileField(sf, tag, index)
		switch {
		case err != nil:
			return err
		case f.isFile():
			return errors.New("a file is a field of a form, and not of a struct in it")
		}
		return addField(to, f)
	})
}
