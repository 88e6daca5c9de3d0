package params

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// A binder fills one struct from one request.
type binder struct {
	params   *Params
	r        *http.Request
	options  *Options
	elements int // made so far
	exceeded bool
	faults   Errors
}

// bind fills v from one source after the other. It returns an error that isn't the
// client's.
func (b *binder) bind(pl *plan, v reflect.Value) error {
	for i := range pl.singles {
		f := &pl.singles[i]
		got, err := b.findSingle(f)
		if err != nil {
			b.faults.note(err)
			continue
		}
		b.bindText(f, v, &got, "")
	}
	if pl.query != nil {
		pairs, err := b.params.queryPairs(b.r)
		if err == nil {
			err = b.bindFields(pl.query, v, pairs, "", 0)
		}
		if err := b.faults.add(err); err != nil {
			return err
		}
	}
	if pl.form != nil {
		pairs, err := b.params.formPairs(b.r, formKind|multipartKind)
		if err != nil {
			return b.faults.add(err)
		}
		if err := b.bindFields(pl.form, v, pairs, "", 0); err != nil {
			return err
		}
		return b.noteUnknownFiles(pl.form)
	}
	if pl.json != nil {
		return b.bindJSON(pl, v)
	}
	return nil
}

// findSingle returns the values of a field from the path, the header or a cookie, of which
// only the path's are checked already.
func (b *binder) findSingle(f *field) (found, *Error) {
	var values []string
	switch {
	case f.from == SourcePath:
		return findPath(b.r, f.name)
	case f.from == SourceCookie:
		for _, c := range b.r.CookiesNamed(f.name) {
			values = append(values, c.Value)
		}
	case f.name == "Host" && b.r.Host != "":
		values = []string{b.r.Host} // net/http takes it out of the header
	default:
		values = b.r.Header[f.name]
	}
	pairs := make([]pair, len(values))
	for i, text := range values {
		if fault := textProblem(text); fault != "" {
			return found{}, malformedError(f.from, f.name, fault)
		}
		pairs[i] = pair{f.name, text}
	}
	return findPair(pairs, f.name, f.from), nil
}

func (b *binder) bindJSON(pl *plan, v reflect.Value) error {
	body, err := b.params.body(jsonKind)
	if err != nil {
		return b.faults.add(err)
	}
	data, to := body.raw, v
	switch {
	case isBlank(data):
		data = []byte("{}")
	case jsontext.Value(data).Kind() == 'n':
		return b.faults.add(jsonClientError(nullError[map[string]any](""), ""))
	}
	if pl.members != nil {
		to = reflect.New(pl.json.typ).Elem()
	}
	if err := decodeJSON(data, b.options, pl.json, to); err != nil {
		return b.faults.add(err)
	}
	for i, index := range pl.members {
		fieldAt(v, index).Set(to.Field(i))
	}
	return nil
}

// bindFields fills the fields of a struct with the parameters of a query or a form. All of
// them have had the prefix before their names.
func (b *binder) bindFields(fields []field, v reflect.Value, pairs []pair, prefix string, depth int) error {
	if depth > b.options.MaxDepth && len(pairs) > 0 {
		b.noteExceeded(fields[0].from, "has names more than %d deep", b.options.MaxDepth)
	}
	for i := range fields {
		f := &fields[i]
		var err error
		switch {
		case b.exceeded:
			return nil
		case f.set != nil:
			got := findPair(pairs, f.name, f.from)
			b.bindText(f, v, &got, prefix)
		case f.inner != nil:
			err = b.bindStructs(f, v, pairs, prefix, depth)
		default:
			err = b.bindFiles(f, v)
		}
		if err != nil {
			return err
		}
	}
	if b.options.DisallowUnknownFields {
		for i := range pairs {
			b.noteUnknown(fields, pairs[i].name, prefix)
		}
	}
	return nil
}

// bindText sets a field to the values that were found for it.
func (b *binder) bindText(f *field, v reflect.Value, got *found, prefix string) {
	to := fieldAt(v, f.index)
	switch {
	case got.count == 0 && f.def.IsValid():
		to.Set(f.def)
	case got.count == 0 && f.required:
		b.note(f, prefix, ErrMissing, "is missing", nil)
	case got.count == 0:
	case !f.many && got.count > 1:
		b.note(f, prefix, ErrMalformed, givenTimesDetail(got.count), nil)
	case b.setTexts(f, to, got, prefix):
		if c := f.failedBy(to); c != nil {
			b.note(f, prefix, c.reason, c.detail, nil)
		}
	}
}

// setTexts sets a field to the values that were given for it, and reports whether it could.
func (b *binder) setTexts(f *field, to reflect.Value, got *found, prefix string) bool {
	if !f.many {
		return b.setText(f, to, got.text, prefix)
	}
	if !b.countElements(f.from, got.count) {
		return false
	}
	to.Set(reflect.MakeSlice(to.Type(), got.count, got.count))
	ok := true
	for i, text := range got.texts(f.name) {
		ok = b.setText(f, to.Index(i), text, prefix) && ok
	}
	return ok
}

func (b *binder) setText(f *field, to reflect.Value, text, prefix string) bool {
	fault, cause := f.set(to, text)
	if fault != "" {
		b.note(f, prefix, ErrMalformed, fault, cause)
	}
	return fault == ""
}

// noteUnknown notes a parameter that no field is for.
func (b *binder) noteUnknown(fields []field, name, prefix string) {
	for i := range fields {
		if _, _, ok := fields[i].match(name); ok {
			return
		}
	}
	b.faults.note(malformedError(fields[0].from, shorten(prefix+name), "is unknown"))
}

// note notes a mistake about a field's parameter.
func (b *binder) note(f *field, prefix string, reason error, detail string, cause error) {
	b.faults.note(&Error{Name: shorten(prefix + f.name), Source: f.from, Reason: reason, Detail: detail, cause: cause})
}

// countElements counts elements that are going to be made, and reports whether they may be.
func (b *binder) countElements(from Source, n int) bool {
	if b.elements += n; b.elements > b.options.MaxElements && !b.exceeded {
		b.noteExceeded(from, "has more than %d elements", b.options.MaxElements)
	}
	return !b.exceeded
}

// noteExceeded notes that the budget isn't enough, which ends the binding of pairs.
func (b *binder) noteExceeded(from Source, detail string, limit int) {
	b.exceeded = true
	b.faults.note(&Error{Source: from, Reason: ErrTooLarge, Detail: fmt.Sprintf(detail, limit)})
}
