// Package params reads what a client sent with a request: path values, the
// query, and a form, multipart or JSON body, each parsed once, on first use.
//
//	p, err := params.From(ctx)
//	page, err := p.IntOr("page", 1)         // path, then content, then query
//	user, err := p.Content().String("user") // the form or JSON body, nothing else
//	order, err := params.JSON[Order](ctx)   // the whole body, strictly decoded
//	search, err := params.Bind[Search](ctx) // a struct, each field from the source it names
//	photo, err := p.File("photo")           // of a multipart form; gone with the request
//
// # Which source answers
//
// The accessors of [Params] ask the path first, then the body if the method is
// POST, PUT or PATCH, then the query; the first source that has the name
// answers, even with an empty value. So a query can't override what the route or
// the body says, and a GET that uses its query never reads a body.
// [Params.Path], [Params.Query], [Params.Content], [Params.Form] and
// [Params.JSON] are views of a single source; those of the body read it
// whatever the method. [Bind] never looks for a value in more than one place.
//
// # How a body is read
//
// Forms and JSON are held in memory, within Options.MaxBody, and put back for
// whoever reads the request's Body next; [Params.Body] returns the bytes of any
// body. Multipart forms are read as they come, within Options.MaxStream: as a whole
// by the accessors and [Params.File], which keep large files on disk until the
// request ends, or part by part with [Params.Parts]. [Params.Stream] is for
// everything else that is large. What was streamed can't be read again. Bodies in
// gzip and deflate are inflated; what is put back is what came.
//
// # What is refused
//
// What the client did wrong is an [*Error], or [Errors] if a binding finds several
// mistakes: its Reason tells a missing value from a malformed one, and its Problem
// method has the status and the members of an RFC 9457 answer. A source with a fault
// is refused as a whole: a malformed percent-encoding, a raw semicolon, text that
// isn't UTF-8, a NUL, a part without a name; in JSON also duplicate names, unpaired
// surrogates and trailing bytes; and whatever exceeds the budget, which [Options]
// describes. A name that is given twice has no single value; ask for it with Strings,
// or bind a slice.
//
// # The standard library beside it
//
// A form that was read here is there for ParseForm and FormValue afterwards, and if
// ParseForm or ParseMultipartForm was first, what they read is the form. After the
// package has read a multipart form, ParseMultipartForm returns an error. A copy of the
// request that was made before the body was read keeps the consumed body, unless
// [Share] was called, as package server does.
//
// The package does no authorization, no sanitizing of texts, and no rules about values
// but those of their types: for these there is Options.Validate.
package params
