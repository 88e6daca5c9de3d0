package params

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Bind fills a new T, a struct, from the request of ctx. Each field has a tag that names the one source of its value
// and its name there:
//
//	type Search struct {
//		Shelf  int                   `path:"shelf"`
//		Words  string                `query:"q" required:"nonempty" max:"200"`
//		Size   int                   `query:"size" default:"20" min:"1" max:"100"`
//		Order  string                `query:"order" oneof:"price name"`
//		Tags   []string              `query:"tag"`
//		Since  params.Opt[time.Time] `query:"since"`
//		Client string                `header:"X-Client-Id"`
//		Theme  string                `cookie:"theme"`
//		Lines  []Line                `json:"lines"`
//		Owner  string                `params:"-"` // not from a client
//	}
//
// The body can also be a form: `form:"lines"`, and a [*File] or []*File for the files in a multipart form. A struct
// without a tag is a group: its fields count as fields of the outer struct. A field with `json:"-"`, or "-" for another
// source, is left out if it names no source.
//
// A missing parameter leaves the field zero. If the field has a default, it gets that. If it is required, the parameter
// is an [ErrMissing], and null is malformed. A missing struct, or null for a struct, counts as an empty struct, so its
// required fields are missing. To make a struct optional, use a pointer, which stays nil, or in JSON an [Opt], which
// distinguishes null from absent.
//
// Texts can be strings, booleans, numbers, [time.Time] (RFC 3339), [time.Duration] ("1m30s") and types that implement
// [encoding.TextUnmarshaler]. The tag layout:"2006-01-02" makes [time.Parse] parse the times of a field with this layout.
// Fields from JSON can't have it. A slice takes all values of its name, and any other field is malformed if there are
// several. In a query or a form, the fields of a struct have names like "address.city", and in a slice of structs like
// "items.0.price". The numbers order the elements and need not be consecutive. JSON is decoded as by [Params.DecodeJSON],
// but an empty body counts as an empty object.
//
// These tags state conditions on a given, well-formed value:
//
//	required:"nonempty"  given, and not an empty text, list or map
//	min:"1" max:"200"    a number or a duration; the characters of a text; the elements of a list or a map
//	len:"3"              the exact size of a text, a list or a map
//	oneof:"free pro"     the allowed texts or whole numbers
//
// An empty value is an [ErrMissing], and a value that fails another condition is an [ErrInvalid]. The conditions do not
// apply to null and to defaults. Those of a pointer or an [Opt] apply to its value.
//
// Bind reads only the sources that T names, and reports all mistakes in them together. If it finds none, it calls
// Options.Validate, and then each function of validate.
//
// It returns an [*Error] for a mistake of the client and [Errors] for several, and then the zero value of T. If T has a
// mistake, Bind always returns another error.
func Bind[T any](ctx context.Context, validate ...func(*T) error) (T, error) {
	return bindBy(ctx, func(p *Params, v *T) error { return p.bind(reflect.ValueOf(v).Elem()) }, validate...)
}

func (p *Params) bind(v reflect.Value) error {
	root, err := rootOf(use{v.Type(), true})
	if err != nil {
		return err
	}
	r, err := p.request()
	if err != nil {
		return err
	}
	b := binder{params: p, options: p.options()}
	if err := b.bind(root, v, r); err != nil {
		return err
	}
	return b.faults.asError()
}

// A binder fills one value from one request, and notes all mistakes of the client.
type binder struct {
	params   *Params
	options  *Options
	elements int  // elements of slices that were made so far
	exceeded bool // the budget is exceeded
	faults   Errors
}

// values holds the parameters of one source: a JSON object, or pairs and files.
type values struct {
	from   Source
	object *jsonValue
	pairs  []pair
	files  []*File
}

// A path is the place of a parameter: its name or its number in a list, and the path of the value that contains it.
type path struct {
	outer *path // nil if the source itself contains it
	name  string
}

func (p *path) pointer() jsontext.Pointer {
	if p == nil {
		return ""
	}
	return p.outer.pointer().AppendToken(p.name)
}

// bind fills a struct from each source in turn. It notes the client's mistakes in b.faults, and returns other errors.
func (b *binder) bind(root *root, v reflect.Value, r *http.Request) (err error) {
	for _, from := range root.order {
		fields, in := root.sources[from], values{from: from}
		switch {
		case from == SourceQuery:
			in.pairs, err = b.params.queryPairs(r)
		case from == SourceForm:
			var form *formData
			if form, err = b.params.form(formKind | multipartKind); err == nil {
				in.pairs, in.files = form.pairs, form.files
			}
		case from == SourceJSON:
			err = b.bindJSON(root.json, v)
		default:
			in.pairs = singlePairs(fields, r)
		}
		if err == nil && from != SourceJSON {
			b.fillFields(fields, v, in, nil, 0)
		}
		if err = b.faults.add(err); err != nil {
			return err
		}
	}
	return nil
}

// bindJSON fills a struct from the body. An empty body counts as an empty object.
func (b *binder) bindJSON(p *plan, v reflect.Value) error {
	body, err := b.params.body(jsonKind)
	if err != nil {
		return err
	}
	text := jsontext.Value(body.raw)
	switch {
	case isBlank(text):
		text = jsontext.Value("{}")
	case text.Kind() != '{':
		_, err = b.params.jsonObject(jsonKind)
		return err
	}
	b.decode(p, text, v)
	return nil
}

// singlePairs returns the values of fields from the path, the header or cookies.
func singlePairs(fields []field, r *http.Request) (pairs []pair) {
	for _, f := range fields {
		var texts []string
		switch {
		case slices.ContainsFunc(pairs, func(p pair) bool { return p.name == f.name }):
		case f.from == SourcePath:
			if value := r.PathValue(f.name); value != "" || isWildcard(r.Pattern, f.name) {
				texts = []string{value}
			}
		case f.from == SourceCookie:
			for _, c := range r.CookiesNamed(f.name) {
				texts = append(texts, c.Value)
			}
		case f.name == "Host" && r.Host != "": // net/http takes it out of the header
			texts = []string{r.Host}
		default:
			texts = r.Header[f.name]
		}
		for _, text := range texts {
			pairs = append(pairs, pair{f.name, text})
		}
	}
	return pairs
}
