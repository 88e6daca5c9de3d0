// Package params reads the parameters of a request: path values, the query, and a form, multipart or JSON body.
// Each source is parsed once, when it is first used.
//
//	p, err := params.From(ctx)
//	page, err := p.IntOr("page", 1)         // path, then content, then query
//	user, err := p.Content().String("user") // the form or JSON body only
//	order, err := params.JSON[Order](ctx)   // the whole body, strictly decoded
//	search, err := params.Bind[Search](ctx) // a struct, each field from the source in its tag
//	photo, err := p.File("photo")           // from a multipart form, removed with the request
//
// # Order of sources
//
// The accessors of [Params] search the path, then the body if the method is POST, PUT, PATCH or QUERY (RFC 10008), then
// the query. The first source that has the name answers, even with an empty value. So a query can't override the route
// or the body, and a GET that uses its query never reads a body. [Params.Path], [Params.Query], [Params.Content],
// [Params.Form] and [Params.JSON] are views of a single source, and read the body whatever the method. [Bind] takes
// each value from one source.
//
// # Bodies
//
// Forms and JSON are held in memory, up to Options.MaxBody, and the next reader of the request's Body gets them
// again. [Params.Body] returns the bytes of any body. Multipart forms are read as a stream, up to
// Options.MaxStream. The accessors and [Params.File] read the whole form, and keep large files on disk until the
// request ends. [Params.Parts] reads the form part by part. [Params.Stream] is for other large bodies. A stream
// can't be read again. Bodies in gzip and deflate are inflated, but the next reader gets them as they were sent.
//
// # Errors
//
// A mistake of the client is an [*Error], or [Errors] if a binding finds several. Its Reason says, for example,
// whether a value is missing or malformed. Its Problem method returns the status and the members of an RFC 9457
// response. A whole source is refused if it has malformed percent-encoding, a raw semicolon, text that is not
// UTF-8, a NUL, or a part without a name. JSON is refused if it has duplicate names, unpaired surrogates or
// trailing bytes. A source that exceeds the budget in [Options] is refused, too. If a name is given twice, it has
// no single value: use Strings, or bind a slice.
//
// # The standard library
//
// ParseForm finds a form that this package has read. If ParseForm is called first, this package finds the form,
// too, provided that [Share] was called and the form has at most 1 MiB. Only one reader can have a multipart form:
// this package or ParseMultipartForm. A copy of the request that was made before the body was read has no body
// afterwards, unless [Share] was called. Package server calls Share.
//
// The package does not authorize requests or sanitize texts.
package params
