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
	return fill(ctx, func(p *Params, v *T) error { return p.bind(reflect.ValueOf(v).Elem()) }, validate...)
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
	b := binder{params: p, r: r, options: p.budgets.of(r)}
	if err := b.bind(pl, v); err != nil {
		return err
	}
	return b.faults.err()
}

// blame returns the mistakes that validation found in the client's values, or the error
// that is the program's.
func blame(err error) error {
	var list Errors
	if own := list.add(err); own != nil {
		return own
	}
	return list.err()
}
