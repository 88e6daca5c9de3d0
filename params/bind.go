package params

import (
	"context"
	"net/http"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// Bind fills a new T, a struct, from the request of ctx. Each field has a tag that
// names the one source of its value and its name there:
//
//	type Search struct {
//		Shelf  int                   `path:"shelf"`
//		Words  string                `query:"q" required:"true"`
//		Size   int                   `query:"size" default:"20"`
//		Tags   []string              `query:"tag"`
//		Since  params.Opt[time.Time] `query:"since"`
//		Client string                `header:"X-Client-Id"`
//		Theme  string                `cookie:"theme"`
//		Lines  []Line                `json:"lines"`
//		Owner  string                `params:"-"` // not from a client
//	}
//
// Instead of JSON it can be a form: `form:"lines"`, and a [*File] or []*File for the
// files of a multipart one. A struct without a tag is a group: its fields are taken as
// if they were the outer one's.
//
// What is not given leaves its field zero, or is the tag's default, or if the field is
// required an [ErrMissing]; null is not enough for that. A struct that is not given, or
// null, is as one without anything in it: its required fields are missing. For a group
// that is optional take a pointer, which stays nil, or in JSON an [Opt], which tells null
// from absent.
//
// Texts can be strings, booleans, numbers, [time.Time] (RFC 3339), [time.Duration]
// ("1m30s") and what implements [encoding.TextUnmarshaler]; a slice takes all values
// of its name, any other field is malformed if there are several. In a query or a
// form the fields of a struct have names like "address.city", of a slice of structs
// like "items.0.price", where the numbers only group and order. JSON is decoded as by
// [Params.DecodeJSON]; an empty body is an object without members.
//
// Only the sources that T names are read. After a successful binding
// Options.Validate is asked, and then each function of validate.
//
// The error is an [*Error] or, for several mistakes of the client, [Errors]; T is its
// zero value then. A mistake in T is another error, whatever the request.
func Bind[T any](ctx context.Context, validate ...func(*T) error) (T, error) {
	var zero T
	p, err := From(ctx)
	if err != nil {
		return zero, err
	}
	v := new(T)
	if err := p.bind(reflect.ValueOf(v).Elem()); err != nil {
		return zero, err
	}
	if err := p.validate(ctx, v); err != nil {
		return zero, err
	}
	for _, check := range validate {
		if err := blame(check(v)); err != nil {
			return zero, err
		}
	}
	return *v, nil
}

// validate asks Options.Validate.
func (p *Params) validate(ctx context.Context, v any) error {
	r, err := p.request()
	if err != nil {
		return err
	}
	check := p.budgets.of(r).Validate
	if check == nil {
		return nil
	}
	return blame(check(ctx, v))
}

// bind fills v.
func (p *Params) bind(v reflect.Value) error {
	pl, err := planOf(v.Type())
	if err != nil {
		return err
	}
	r, err := p.request()
	if err != nil {
		return err
	}
	b := binder{options: p.budgets.of(r)}
	if err := b.sources(pl, p, r, v); err != nil {
		return err
	}
	return b.faults.err()
}

// sources fills v from one source after the other.
func (b *binder) sources(pl *plan, p *Params, r *http.Request, v reflect.Value) error {
	b.singles(pl, p, r, v)
	if pl.query != nil {
		if err := b.query(pl, p, r, v); err != nil {
			return err
		}
	}
	if pl.form != nil {
		return b.form(pl, p, r, v)
	}
	if pl.json != nil {
		return b.json(pl, p, v)
	}
	return nil
}

// singles fills the fields from the path, the header and the cookies.
func (b *binder) singles(pl *plan, p *Params, r *http.Request, v reflect.Value) {
	for i := range pl.path {
		f := &pl.path[i]
		got, err := p.findPath(r, f.name)
		switch {
		case err != nil:
			b.faults.note(err)
		case got.count == 0:
			b.absent(SourcePath, f, v, nil, 0)
		default:
			b.set(SourcePath, f, f.name, fieldAt(v, f.index), got.text)
		}
	}
	for i := range pl.header {
		f := &pl.header[i]
		b.texts(SourceHeader, f, v, headerValues(r, f.name))
	}
	for i := range pl.cookie {
		f := &pl.cookie[i]
		var values []string
		for _, c := range r.CookiesNamed(f.name) {
			values = append(values, c.Value)
		}
		b.texts(SourceCookie, f, v, values)
	}
}

// headerValues returns the lines of a field of the header, be it the host's.
func headerValues(r *http.Request, name string) []string {
	if name == "Host" && r.Host != "" {
		return []string{r.Host} // net/http takes it out of the header
	}
	return r.Header[name]
}

// texts fills a field with values that nothing has checked.
func (b *binder) texts(from Source, f *textField, v reflect.Value, values []string) {
	pairs := make([]pair, len(values))
	for i, text := range values {
		if fault := textFault(text); fault != "" {
			b.refuse(from, f.name, fault, nil)
			return
		}
		pairs[i] = pair{f.name, text}
	}
	switch {
	case len(values) == 0:
		b.absent(from, f, v, nil, 0)
	case len(values) > 1 && !f.many:
		b.refuse(from, f.name, givenTimes(len(values)), nil)
	default:
		b.first(from, f, v, pairs)
	}
}

func (b *binder) query(pl *plan, p *Params, r *http.Request, v reflect.Value) error {
	pairs, err := p.queryPairs(r)
	if err != nil {
		return b.faults.add(err)
	}
	b.pairs(pl.query, v, pairs, 0, 0)
	return nil
}

func (b *binder) form(pl *plan, p *Params, r *http.Request, v reflect.Value) error {
	pairs, err := p.formPairs(r, formKind|multipartKind)
	if err != nil {
		return b.faults.add(err)
	}
	b.pairs(pl.form, v, pairs, 0, 0)
	return b.files(pl.form, p, r, v)
}

func (b *binder) json(pl *plan, p *Params, v reflect.Value) error {
	body, err := p.body(jsonKind)
	if err != nil {
		return b.faults.add(err)
	}
	data := body.raw
	switch {
	case isBlank(data):
		data = []byte("{}")
	case jsontext.Value(data).Kind() == 'n':
		return b.faults.add(jsonError(ErrMalformed, "", "must be an object, not null"))
	}
	return b.faults.add(decodeJSON(data, b.options, pl.json, v, pl.json.whole))
}

// blame returns the mistakes that validation found in what the client sent, or the
// error that is the program's.
func blame(err error) error {
	var list Errors
	if own := list.gather(err); own != nil {
		return own
	}
	return list.err()
}
