package params

import (
	"fmt"
	"reflect"
	"strings"
)

// mostFields bounds the structs that are read here; larger ones are left to
// encoding/json.
const mostFields = 256

// A structCodec is how the members of an object get into the fields of a struct.
// Names are matched as encoding/json does: exactly, or else without regard to letter
// case.
type structCodec struct {
	fields []jsonField
	names  map[string]int
	folded map[string]int
	lazy   bool // some fields are required or have a default
}

type jsonField struct {
	name     string
	index    []int
	codec    *codec
	required bool
	def      reflect.Value // the zero Value for none
}

func fieldAt(v reflect.Value, index []int) reflect.Value {
	if len(index) == 1 {
		return v.Field(index[0])
	}
	return v.FieldByIndex(index)
}

func (s *structCodec) decode(d *decoder, v reflect.Value) error {
	if d.peek() != '{' {
		return d.mismatch("must be an object")
	}
	if err := d.enter(); err != nil {
		return err
	}
	var m members
	if d.next() == '}' {
		d.pos++
	} else if err := s.read(d, v, &m); err != nil {
		return err
	}
	d.depth--
	if s.lazy {
		return s.complete(d, v, &m)
	}
	return nil
}

// members are those that an object had so far.
type members struct {
	count  int
	next   int                     // the field that probably comes next
	seen   [mostFields / 64]uint64 // of the fields
	others *nameSet                // that no field has
}

// mark notes a field, and says whether it was there already.
func (m *members) mark(field int) (again bool) {
	word, bit := &m.seen[field/64], uint64(1)<<(field%64)
	again = *word&bit != 0
	*word |= bit
	return again
}

func (m *members) has(field int) bool { return m.seen[field/64]&(1<<(field%64)) != 0 }

// read reads the members of an object.
func (s *structCodec) read(d *decoder, v reflect.Value, m *members) error {
	for {
		name, err := d.memberName()
		if err != nil {
			return err
		}
		if m.count++; m.count > d.options.MaxParams {
			return d.tooManyMembers()
		}
		d.path = append(d.path, step{name: name})
		if err := s.member(d, v, m, name); err != nil {
			return err
		}
		d.path = d.path[:len(d.path)-1]
		if more, err := d.separator('}'); !more {
			return err
		}
	}
}

func (s *structCodec) member(d *decoder, v reflect.Value, m *members, name []byte) error {
	i := s.find(name, m.next)
	if i < 0 {
		return s.unknown(d, m, name)
	}
	m.next = i + 1
	f := &s.fields[i]
	if m.mark(i) {
		d.path = d.path[:len(d.path)-1]
		if string(name) == f.name {
			return d.twice(name, "is given twice")
		}
		return d.twice(name, inOtherCase)
	}
	if f.required && d.peek() == 'n' {
		return d.mismatch("must not be null")
	}
	return d.into(f.codec, fieldAt(v, f.index))
}

// find returns the field that a name belongs to, or -1. Members mostly come in the
// order of the fields.
func (s *structCodec) find(name []byte, next int) int {
	if next < len(s.fields) && s.fields[next].name == string(name) {
		return next
	}
	if i, ok := s.names[string(name)]; ok {
		return i
	}
	if i, ok := s.folded[foldName(name)]; ok {
		return i
	}
	return -1
}

// unknown skips a member that no field has.
func (s *structCodec) unknown(d *decoder, m *members, name []byte) error {
	if m.others == nil {
		m.others = new(nameSet)
	}
	if same, _ := m.others.add(name); same {
		d.path = d.path[:len(d.path)-1]
		return d.twice(name, "is given twice")
	}
	if d.options.DisallowUnknownFields {
		if err := d.refuse("is unknown", nil); err != nil {
			return err
		}
	}
	_, err := d.skip()
	return err
}

// complete gives the fields that had no member their defaults, and misses those that
// are required.
func (s *structCodec) complete(d *decoder, v reflect.Value, m *members) error {
	for i := range s.fields {
		f := &s.fields[i]
		switch {
		case m.has(i):
		case f.def.IsValid():
			fieldAt(v, f.index).Set(f.def)
		case f.required:
			e := d.at(missing(SourceJSON, f.name), step{name: []byte(f.name)})
			if err := d.faults.add(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// structOf compiles a struct, or returns nil for one that is left to encoding/json.
func (m compiler) structOf(t reflect.Type) (*structCodec, error) {
	fields, simple, err := m.jsonFields(t, nil)
	if err != nil {
		return nil, err
	}
	if simple {
		if s := newStructCodec(fields); s != nil {
			return s, nil
		}
	}
	for _, f := range fields {
		if f.required || f.def.IsValid() {
			return nil, fmt.Errorf("params: %v can't have required fields and defaults, since it has what is left to encoding/json", t)
		}
	}
	return nil, nil
}

// newStructCodec returns nil for fields of which encoding/json has rules which one
// wins.
func newStructCodec(fields []jsonField) *structCodec {
	s := &structCodec{fields: fields, names: map[string]int{}, folded: map[string]int{}}
	for i, f := range fields {
		if _, double := s.names[f.name]; double {
			return nil
		}
		s.names[f.name] = i
		s.lazy = s.lazy || f.required || f.def.IsValid()
		fold := foldName([]byte(f.name))
		if _, taken := s.folded[fold]; !taken {
			s.folded[fold] = i
		}
	}
	return s
}

// jsonFields lists the fields of a struct and of the structs that are embedded in it.
// simple is false for what only encoding/json knows how to do.
func (m compiler) jsonFields(t reflect.Type, index []int) (fields []jsonField, simple bool, err error) {
	simple = true
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		switch {
		case sf.Tag.Get("json") == "-":
			continue
		case sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct:
			inner, ok, err := m.jsonFields(sf.Type, at)
			if err != nil {
				return nil, false, err
			}
			fields, simple = append(fields, inner...), simple && ok
			continue
		case sf.Anonymous:
			simple = false
			continue
		case !sf.IsExported():
			continue
		case strings.ContainsAny(name, "\\\"'`"), hasOption(options, "string"):
			simple = false
		}
		f, err := m.jsonField(sf, name, options, at)
		if err != nil {
			return nil, false, fmt.Errorf("params: %v.%s: %w", t, sf.Name, err)
		}
		fields = append(fields, f)
	}
	return fields, simple && len(fields) <= mostFields, nil
}

func (m compiler) jsonField(sf reflect.StructField, name, options string, index []int) (f jsonField, err error) {
	if name == "" {
		name = sf.Name
	}
	f = jsonField{name: name, index: index, required: hasOption(options, "required")}
	if f.codec, err = m.codec(sf.Type); err == nil {
		f.def, err = defaultOf(sf)
	}
	if err == nil && f.required && f.def.IsValid() {
		err = errDefaultRequired
	}
	return f, err
}

// hasOption looks for a word in the comma-separated rest of a tag.
func hasOption(options, word string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == word {
			return true
		}
	}
	return false
}
