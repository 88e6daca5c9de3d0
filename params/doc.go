// Package params reads the parameters of a request: path values, the query, and a
// form, multipart or JSON body, each parsed once, on first use.
//
//	p, err := params.From(ctx)
//	page, err := p.IntOr("page", 1)         // path, then content, then query
//	user, err := p.Content().String("user") // the form or JSON body, nothing else
//	order, err := params.JSON[Order](ctx)   // the whole body, strictly decoded
//	search, err := params.Bind[Search](ctx) // a struct, each field from the source it names
//	photo, err := p.File("photo")           // of a multipart form; removed with the request
//
// # Order of sources
//
// The accessors of [Params] look in the path first, then in the body if the method is
// POST, PUT, PATCH or QUERY (RFC 10008), then in the query; the first source that has the
// name answers, even with an empty value. So a query can't override the route or the body, and a GET that
// uses its query never reads a body. [Params.Path], [Params.Query], [Params.Content],
// [Params.Form] and [Params.JSON] are views of a single source; those of the body read it
// whatever the method. [Bind] never looks for a value in more than one place.
//
// # Bodies
//
// Forms and JSON are held in memory, within Options.MaxBody, and the next reader of the
// request's Body finds them again; [Params.Body] returns the bytes of any body. Multipart
// forms are read as they come, within Options.MaxStream: as a whole by the accessors and
// [Params.File], which keep large files on disk until the request ends, or part by part
// with [Params.Parts]. [Params.Stream] is for all other large bodies. A stream can't be
// read again. Bodies in gzip and deflate are inflated; the next reader finds them as sent.
//
// # Errors
//
// A mistake of the client is an [*Error], or [Errors] if a binding finds several: its
// Reason distinguishes missing from malformed values, and its Problem method returns the
// status and the members of an RFC 9457 response. A source with a fault is refused as a
// whole: a malformed percent-encoding, a raw semicolon, text that isn't UTF-8, a NUL, a
// part without a name; in JSON also duplicate names, unpaired surrogates and trailing
// bytes; and everything that exceeds the budget, see [Options]. A name that is given
// twice has no single value; use Strings, or bind a slice.
//
// # Together with the standard library
//
// ParseForm and FormValue find a form that this package has read, and if ParseForm or
// ParseMultipartForm was first, what they read is the form. After this package has read a
// multipart form, ParseMultipartForm returns an error. A copy of the request that was made
// before the body was read keeps the consumed body, unless [Share] was called, as package
// server does.
//
// The package does no authorization and no sanitizing of texts. [Bind] checks sizes and ranges by
// tags. Other conditions are for Options.Validate.
package params
