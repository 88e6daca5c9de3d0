package params

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
)

var (
	paramsKey = reqctx.NewKey[*Params]("params")
	bodyKey   = reqctx.NewKey[*body]("params.body")
	uploadKey = reqctx.NewKey[*formData]("params.upload")
)

// Params holds the parameters of one request. Its accessors search the path, then the body of a POST, PUT, PATCH or QUERY,
// then the query. They return an [ErrUnsupported] if such a body is neither a form nor JSON. Path, Query, Content, Form and
// JSON return accessors for one source. Params is safe for concurrent use, except for streams. Reading the body replaces
// the request's Body, so nothing else may use the Body at the same time.
type Params struct {
	View

	ctx     *reqctx.Context
	budgets *budgets
	err     error // every accessor returns it

	content atomic.Pointer[content] // describes the body, nil until it is needed
	way     atomic.Int32            // how the body is read: unread, held or streamed

	parseQuery sync.Once
	query      []pair
	queryErr   error
	few        [6]pair // holds a short query without an allocation
}

// Provide registers the state "params", whose value is a *Params, and the private properties "params.body" and
// "params.upload", which read the body and a multipart form. A request that does not use its parameters pays nothing
// for them. Provide panics if [Options.Err] returns an error, or if the registry has these properties already.
func Provide(reg *reqctx.Registry, o Options) {
	b, err := newBudgets(o)
	if err != nil {
		panic(err)
	}
	reqctx.ProvideState(reg, paramsKey, func(ctx context.Context) (*Params, error) { return newParams(ctx, b) })
	// These properties are private. Otherwise, Resolve could read the body on another goroutine, and net/http sends no
	// response while a body is being read.
	reqctx.Provide(reg, bodyKey, reqctx.Prop[*body]{Private: true, Resolve: resolveBody})
	reqctx.Provide(reg, uploadKey, reqctx.Prop[*formData]{Private: true, Resolve: resolveUpload})
}

// From returns the parameters of ctx's request, without any I/O. The result is never nil: after an error, its
// accessors return that error.
func From(ctx context.Context) (*Params, error) {
	p, err := paramsKey.Get(ctx)
	if err != nil {
		p = &Params{err: err}
		p.View = View{p, allKinds}
	}
	return p, err
}

// Of does the same as [From] for a handler of another router, whose request may be a copy. Afterwards, the parameters have
// the path values and the route's budget of r.
func Of(r *http.Request) (*Params, error) {
	p, err := From(r.Context())
	if err == nil {
		p.ctx.SetRequest(r)
	}
	return p, err
}

func newParams(ctx context.Context, b *budgets) (*Params, error) {
	p := &Params{ctx: reqctx.From(ctx), budgets: b}
	p.View = View{p, allKinds}
	_, err := p.request()
	return p, err
}

// request returns the request, which routing may have replaced by a copy with path values.
func (p *Params) request() (*http.Request, error) {
	switch {
	case p.err != nil:
		return nil, p.err
	case p.ctx == nil || p.ctx.Request() == nil:
		return nil, option.Prefix("params: ", "reqctx", reqctx.ErrNoRequest)
	}
	return p.ctx.Request(), nil
}

// options returns the budget of the request, which must exist.
func (p *Params) options() *Options { return p.budgets.forRequest(p.ctx.Request()) }

// describe returns the request and the description of its body.
func (p *Params) describe() (*http.Request, *content, error) {
	r, err := p.request()
	if err != nil {
		return nil, nil, err
	}
	return r, p.contentOf(r), nil
}

// Path is a view of the values that the route's wildcards matched.
func (p *Params) Path() View { return View{p, pathKind} }

// Query is a view of the URL's query. It never reads the body.
func (p *Params) Query() View { return View{p, queryKind} }

// Content is a view of the body: a form, also a multipart form, or a JSON object. A body of another type is an
// [ErrUnsupported] and is not read.
func (p *Params) Content() View { return View{p, contentKind} }

// Form is a view of the texts in an urlencoded or a multipart form. A body of another type is an [ErrUnsupported].
func (p *Params) Form() View { return View{p, formKind | multipartKind} }

// JSON is a view of the members of a JSON object. A body of another type is an [ErrUnsupported].
// [Params.DecodeJSON] decodes the whole body.
func (p *Params) JSON() View { return View{p, jsonKind} }

func (p *Params) queryPairs(r *http.Request) ([]pair, error) {
	p.parseQuery.Do(func() {
		if r.URL != nil {
			p.query, p.queryErr = parsePairs(p.few[:0], r.URL.RawQuery, SourceQuery, p.budgets.forRequest(r).MaxParams)
		}
	})
	return p.query, p.queryErr
}

// contentOf describes r's body. It looks at r.Body only in the first call, because reading the body replaces it.
func (p *Params) contentOf(r *http.Request) *content {
	if c := p.content.Load(); c != nil {
		return c
	}
	c := contentOf(r.Header)
	c.none = !hasBody(r)
	p.content.CompareAndSwap(nil, &c)
	return p.content.Load()
}
