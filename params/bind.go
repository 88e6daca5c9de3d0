package params

import (
	"context"
	"reflect"
)

// Bind fills a new T, a struct, from the request of ctx. Each field has a tag that
// names the one source of its value and its name there:
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
// Instead of JSON it can be a form: `form:"lines"`, and a [*File] or []*File for the
// files of a multipart one. A struct without a tag is a group: its fields are taken for
// the outer struct's.
//
// A field that isn't given stays zero, or gets the tag's default, or if it is required is
// an [ErrMissing]; null is not enough for that. A struct that isn't given, or is null,
// counts as an empty one: its required fields are missing. An optional group is a pointer,
// which stays nil, or in JSON an [Opt], which distinguishes null from absent.
//
// Texts can be strings, booleans, numbers, [time.Time] (RFC 3339), [time.Duration]
// ("1m30s") and types that implement [encoding.TextUnmarshaler]; a slice takes all values
// of its name, any other field is malformed if there are several. In a query or a form
// the fields of a struct have names like "address.city", in a slice of structs like
// "items.0.price", where the numbers only group and order. JSON is decoded as by
// [Params.DecodeJSON]; an empty body is an object without members.
//
// These tags state conditions on a value that is given and well-formed:
//
//	required:"nonempty"  given, and not an empty text, list or map
//	min:"1" max:"200"    a number or a duration; the characters of a text; the elements of a list or a map
//	len:"3"              the same, exactly, for a text, a list or a map
//	oneof:"free pro"     a text or a whole number
//
// An empty value is an [ErrMissing] like one that isn't given. The other conditions are [ErrInvalid].
// Bind reports them together with missing and malformed values. They do not apply to null and to
// defaults. A pointer or an [Opt] has the conditions of its value.
//
// Bind reads only the sources that T names. If it finds no mistake, it calls Options.Validate and then
// each function of validate.
//
// It returns an [*Error] for a mistake of the client, [Errors] for several, and then the
// zero value of T. A mistake in T is another error, whatever the request.
func Bind[T any](ctx context.Context, validate ...func(*T) error) (T, error) {
	return bindBy(ctx, func(p *Params, v *T) error { return p.bind(reflect.ValueOf(v).Elem()) }, validate...)
}

func (p *Params) bind(v reflect.Value) error {
	pl, err := planOf(v.Type())
	if err != nil {
		return err
	}
	r, err := p.request()
	if err != nil {
		return err
	}
	b := binder{params: p, r: r, options: p.budgets.forRequest(r)}
	if err := b.bind(pl, v); err != nil {
		return err
	}
	return b.faults.asError()
}

// clientErrors returns the mistakes that validation found in the client's values, or the error
// that is the program's.
func clientErrors(err error) error {
	var list Errors
	if own := list.add(err); own != nil {
		return own
	}
	return list.asError()
}
