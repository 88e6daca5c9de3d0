package params

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// fillFields fills the fields of a struct from the parameters of one source.
func (b *binder) fillFields(fields []field, v reflect.Value, in values, at *path, depth int) {
	if depth > b.options.MaxDepth && len(in.pairs) > 0 {
		b.noteExceeded(in.from, "has names more than %d deep", b.options.MaxDepth)
	}
	for i := range fields {
		f := &fields[i]
		switch {
		case b.exceeded:
			return
		case f.from == SourceJSON:
			b.fillField(f, v, findMember(in.object, f.name), at)
		case f.plan.isStruct():
			b.fillStructs(f, v, in.pairs, at, depth)
		case f.plan.isFile():
			b.fillField(f, v, findFiles(in.files, f.name), at)
		default:
			b.fillField(f, v, findPair(in.pairs, f.name, f.from), at)
		}
	}
	if in.object == nil || !b.options.DisallowUnknownFields {
		return
	}
	for _, name := range in.object.names {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			b.note(in.from, at, name, ErrMalformed, "is unknown", nil)
		}
	}
}

// fillField sets a field to the value that was found for it.
func (b *binder) fillField(f *field, v reflect.Value, got found, outer *path) {
	to, isNull, isList, faults := fieldAt(v, f.index), got.json != nil && got.json.raw.Kind() == 'n', f.plan.elem != nil, len(b.faults)
	switch {
	case got.count == 0 && f.def != nil:
		to.SetZero()
		b.setText(f, to, *f.def, outer)
	case got.count == 0 && f.required:
		b.note(f.from, outer, f.name, ErrMissing, "is missing", nil)
	case got.count == 0 && f.plan.fields == nil:
	case got.count == 0: // a missing struct counts as an empty struct
		b.fillFields(f.plan.fields, to, values{}, &path{outer, f.name}, 0)
	case isNull && f.required:
		b.note(f.from, outer, f.name, ErrMalformed, "must not be null", nil)
	case got.json != nil:
		b.setJSON(f.plan, to, got.json, &path{outer, f.name})
	case !isList && got.count > 1:
		b.note(f.from, outer, f.name, ErrMalformed, givenTimesDetail(got.count), nil)
	case isList && got.files != nil:
		to.Set(reflect.ValueOf(got.files))
	case got.files != nil:
		to.Set(reflect.ValueOf(got.files[0]))
	case !isList:
		b.setText(f, to, got.text, outer)
	default:
		b.setTexts(f, to, got, outer)
	}
	if got.count == 0 || isNull || len(b.faults) > faults {
		return
	}
	if c := f.failedBy(to); c != nil {
		b.note(f.from, outer, f.name, c.reason, c.detail, nil)
	}
}

func (b *binder) setTexts(f *field, to reflect.Value, got found, outer *path) {
	if !b.countElements(f.from, got.count) {
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), got.count, got.count))
	for i, text := range got.texts(f.name) {
		b.setText(f, to.Index(i), text, outer)
	}
}

func (b *binder) setText(f *field, to reflect.Value, text string, outer *path) {
	fault, cause := textProblem(text), error(nil)
	if fault == "" {
		fault, cause = setText(to, text, f.layout)
	}
	if fault != "" {
		b.note(f.from, outer, f.name, ErrMalformed, fault, cause)
	}
}

// fillStructs fills a field that is a struct, a pointer to a struct, or a list of structs. The numbers in names such as
// "items.7.price" only order the elements, so that a large number does not make a long list.
func (b *binder) fillStructs(f *field, v reflect.Value, pairs []pair, outer *path, depth int) {
	var numbers []int // of the elements, in order
	var elements [][]pair
	for _, p := range pairs {
		number, rest, ok := f.match(p.name)
		if !ok {
			continue
		}
		i, ok := slices.BinarySearch(numbers, number)
		if !ok {
			numbers, elements = slices.Insert(numbers, i, number), slices.Insert(elements, i, nil)
		}
		elements[i] = append(elements[i], pair{rest, p.value})
	}
	to, at, fields := fieldAt(v, f.index), &path{outer, f.name}, f.plan.inner().fields
	switch {
	case f.plan.elem == nil: // a missing struct counts as an empty struct
		b.fillFields(fields, to, values{from: f.from, pairs: slices.Concat(elements...)}, at, depth+1)
	case len(elements) == 0 || !b.countElements(f.from, len(elements)):
	case to.Kind() == reflect.Pointer:
		b.fillFields(fields, target(to), values{from: f.from, pairs: elements[0]}, at, depth+1)
	default:
		to.Set(reflect.MakeSlice(to.Type(), len(elements), len(elements)))
		for i, number := range numbers {
			b.fillFields(fields, target(to.Index(i)), values{from: f.from, pairs: elements[i]}, &path{at, strconv.Itoa(number)}, depth+1)
		}
	}
}

// note notes a mistake about a parameter in the outer value.
func (b *binder) note(from Source, outer *path, name string, reason error, detail string, cause error) {
	if b.faults.full() {
		return
	}
	e := placeError(reason, from, (&path{outer, name}).pointer(), detail)
	e.cause = cause
	b.faults.note(e)
}

// countElements counts elements that are about to be made, and reports whether the budget allows them.
func (b *binder) countElements(from Source, n int) bool {
	if b.elements += n; b.elements > b.options.MaxElements && !b.exceeded {
		b.noteExceeded(from, "has more than %d elements", b.options.MaxElements)
	}
	return !b.exceeded
}

// noteExceeded notes that the budget is exceeded. Then no more fields are filled.
func (b *binder) noteExceeded(from Source, detail string, limit int) {
	b.exceeded = true
	b.faults.note(newError(ErrTooLarge, from, "", fmt.Sprintf(detail, limit)))
}

// match reports whether a parameter belongs to f, which is filled with structs from pairs. It returns the rest of the
// name, and the number of the element.
func (f *field) match(name string) (number int, rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, f.name+".")
	if !ok || f.plan.typ.Kind() != reflect.Slice {
		return 0, rest, ok
	}
	digits, rest, ok := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), rest, ok && err == nil && (digits[0] != '0' || digits == "0") // so that each number has only one spelling
}

func fieldAt(v reflect.Value, index []int) reflect.Value {
	if len(index) == 1 {
		return v.Field(index[0])
	}
	return v.FieldByIndex(index)
}
