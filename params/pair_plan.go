package params

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A pairPlan is how the parameters of a query or a form get into a struct. Those of
// a struct within it have names with a dot, "address.city", those of a slice of
// structs also numbers, "items.0.price".
type pairPlan struct {
	from     Source
	fields   []textField
	byName   map[string]int // of the fields
	files    []fileField
	branches []branch
}

// A branch is a slice of structs, or a pointer to one: values that are made when
// there is something to put into them.
type branch struct {
	prefix string // "items."
	index  []int
	many   bool
	plan   *pairPlan
}

// A fileField is a *File, or a slice of them.
type fileField struct {
	name     string
	index    []int
	many     bool
	required bool
}

var fileType = reflect.TypeFor[*File]()

// pairCompiler holds the plans that are being made, which a type may need within
// itself.
type pairCompiler map[reflect.Type]*pairPlan

// structOf compiles a struct that is a branch.
func (m pairCompiler) structOf(t reflect.Type, from Source) (*pairPlan, error) {
	if pp := m[t]; pp != nil {
		return pp, nil
	}
	pp := &pairPlan{from: from}
	m[t] = pp
	return pp, m.fields(pp, t, "", nil)
}

// fields compiles the fields of a struct that the outer one's tag has given a source.
func (m pairCompiler) fields(pp *pairPlan, t reflect.Type, prefix string, index []int) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		tag, ok := sf.Tag.Lookup(string(pp.from))
		var err error
		switch {
		case tag == "-", sf.Tag.Get("params") == "-":
		case ok && sf.IsExported():
			err = m.field(pp, sf, tag, prefix, at)
		case sf.Anonymous && sf.Type.Kind() == reflect.Struct:
			err = m.fields(pp, sf.Type, prefix, at)
		case ok:
			err = fmt.Errorf("is not exported")
		case sf.IsExported():
			err = fmt.Errorf(`has no tag %s; params:"-" leaves it out`, pp.from)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", sf.Name, err)
		}
	}
	return nil
}

// field compiles a field: a text, a file, or a struct with fields of its own.
func (m pairCompiler) field(pp *pairPlan, sf reflect.StructField, tag, prefix string, index []int) error {
	if err := checkName(tag); err != nil {
		return err
	}
	required, def, err := demandOf(sf)
	t := sf.Type
	many := isList(t)
	if many {
		t = t.Elem()
	}
	if t == fileType {
		if pp.from != SourceForm || prefix != "" {
			return fmt.Errorf("a file is a field of a form, and not of a struct in it")
		}
		pp.files = append(pp.files, fileField{tag, index, many, required})
		return err
	}
	if _, err := setterOf(t); err == nil {
		f, err := textFieldOf(sf, tag, index)
		if err != nil {
			return err
		}
		f.name = prefix + f.name
		return pp.add(f)
	}
	pointer := !many && t.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() != reflect.Struct, isOpt(t):
		return fmt.Errorf("no text can be a %v", sf.Type)
	case err != nil:
		return err
	case required || def.IsValid():
		return fmt.Errorf("a struct can't be required or have a default")
	case many || pointer:
		inner, err := m.structOf(t, pp.from)
		pp.branches = append(pp.branches, branch{prefix + tag + ".", index, many, inner})
		return err
	}
	return m.fields(pp, t, prefix+tag+".", index)
}

// add adds a field under its name.
func (pp *pairPlan) add(f textField) error {
	if _, ok := pp.byName[f.name]; ok {
		return fmt.Errorf("the %s parameter %q has a field already", pp.from, f.name)
	}
	if pp.byName == nil {
		pp.byName = map[string]int{}
	}
	pp.byName[f.name] = len(pp.fields)
	pp.fields = append(pp.fields, f)
	return nil
}

// find returns the field of a name, or -1. Parameters mostly come in the order of the
// fields.
func (pp *pairPlan) find(name string, next int) int {
	if next < len(pp.fields) && pp.fields[next].name == name {
		return next
	}
	if i, ok := pp.byName[name]; ok {
		return i
	}
	return -1
}

// branchOf returns the branch that a name leads into, with the number that it has
// there and how long it is up to the rest; -1 if there is none.
func (pp *pairPlan) branchOf(name string) (i, number, skip int) {
	for i, b := range pp.branches {
		rest, ok := strings.CutPrefix(name, b.prefix)
		if !ok {
			continue
		}
		if !b.many {
			return i, 0, len(b.prefix)
		}
		digits, _, ok := strings.Cut(rest, ".")
		n, err := strconv.ParseUint(digits, 10, 31)
		if ok && err == nil && (digits[0] != '0' || digits == "0") { // one way to write a number
			return i, int(n), len(b.prefix) + len(digits) + 1
		}
	}
	return -1, 0, 0
}

// isFile says whether name is that of a file, which a form that isn't multipart can
// only have the name of.
func (pp *pairPlan) isFile(name string) bool {
	return slices.ContainsFunc(pp.files, func(f fileField) bool { return f.name == name })
}
