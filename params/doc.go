// Package params reads what a client sent with a request: path values, the
// query, and a form or JSON body, each parsed once, on first use.
//
//	p, err := params.From(ctx)
//	page, err := p.IntOr("page", 1)         // path, then content, then query
//	user, err := p.Content().String("user") // the form or JSON body, nothing else
//	order, err := params.JSON[Order](ctx)   // the whole body, strictly decoded
//
// # Which source answers
//
// The accessors of [Params] ask the path first, then the body if the method is
// POST, PUT or PATCH, then the query; the first source that has the name
// answers, even with an empty value. So a query can't override what the route or
// the body says, and a GET that uses its query never reads a body.
// [Params.Path], [Params.Query], [Params.Content], [Params.Form] and
// [Params.JSON] are views of a single source; those of the body read it
// whatever the method.
//
// # What is refused
//
// What the client did wrong is an [*Error]: its Reason tells a missing value from
// a malformed one, and its Problem method has the status and the members of
// an RFC 9457 answer. A source with a fault is refused as a whole: a malformed
// percent-encoding, a raw semicolon, text that isn't UTF-8, a NUL, more than
// Options.MaxParams parameters; in JSON also duplicate names, unpaired
// surrogates, trailing bytes, and nesting beyond Options.MaxDepth. A name that
// is given twice has no single value; ask for it with Strings.
//
// # The standard library beside it
//
// A body that was read here is put back, so that ParseForm and FormValue find
// the same data afterwards. If ParseForm was first, its PostForm is the form.
// A copy of the request that was made before the body was read keeps the
// consumed body.
//
// The package does not read multipart bodies, does not inflate compressed
// ones, and does not read headers or cookies.
package params
