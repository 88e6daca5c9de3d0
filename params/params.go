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
	uploadKey = reqctx.NewKey[*upload]("params.upload")
)

// Params are the parameters of one request. The accessors look in the path, then in
// the body of a POST, PUT, PATCH or QUERY, then in the query; Path, Query, Content, Form and
// JSON narrow them to one source. So the accessors return a 415 for a POST whose body is
// neither a form nor JSON, and those of Path and Query don't. Params belong to their
// request and are safe for concurrent use, except for streams. As reading a body replaces
// the request's Body, nothing else may use that at the same time.
type Params struct {
	View

	ctx     *reqctx.Context
	budgets *budgets
	err     error // of From, for every accessor

	content atomic.Pointer[content] // of the body, nil until it is needed
	way     atomic.Int32            // in which the body is read: unread, held or streamed

	parseQuery sync.Once
	query      []pair
	queryErr   error
	few        [6]pair // room for the query
}

// Provide registers the state "params", whose value is a *Params, and the private
// properties "params.body" and "params.upload", which read the body and a multipart form.
// A request that doesn't use its params pays nothing for them. Provide panics if
// [Options.Err] returns an error, and on a registry that has the properties already.
func Provide(reg *reqctx.Registry, o Options) {
	b, err := newBudgets(o)
	if err != nil {
		panic(err)
	}
	reqctx.ProvideState(reg, paramsKey, func(ctx context.Context) (*Params, error) { return newParams(ctx, b) })
	// These are private because Resolve could read the body on another goroutine, and
	// net/http sends no response while a body is read.
	reqctx.Provide(reg, bodyKey, reqctx.Prop[*body]{Private: true, Resolve: resolveBody})
	reqctx.Provide(reg, uploadKey, reqctx.Prop[*upload]{
		Private: true,
		Resolve: resolveUpload,
		Close:   func(_ context.Context, u *upload, _ error) error { return u.close() },
	})
}

// From returns the parameters of ctx's request, without any I/O. The result is never
// nil: after an error its accessors return that error.
func From(ctx context.Context) (*Params, error) {
	p, err := paramsKey.Get(ctx)
	if err != nil {
		p = &Params{err: err}
		p.View = View{p, allKinds}
		return p, err
	}
	return p, nil
}

// Of is [From] for a handler of another router, which may work on a copy of the
// request: path values and the route's budget are those of r from then on.
func Of(r *http.Request) (*Params, error) {
	p, err := From(r.Context())
	if err == nil {
		p.ctx.SetRequest(r)
	}
	return p, err
}

func newParams(ctx context.Context, b *budgets) (*Params, error) {
	c := reqctx.From(ctx)
	if c == nil || c.Request() == nil {
		return nil, option.Prefix("params: ", "reqctx", reqctx.ErrNoRequest)
	}
	p := &Params{ctx: c, budgets: b}
	p.View = View{p, allKinds}
	return p, nil
}

// request returns the request, which routing may have replaced by a copy with path values.
func (p *Params) request() (*http.Request, error) {
	if p.err != nil {
		return nil, p.err
	}
	r := p.ctx.Request()
	if r == nil {
		return nil, option.Prefix("params: ", "reqctx", reqctx.ErrNoRequest)
	}
	return r, nil
}

// options returns the budget of the request, which must exist.
func (p *Params) options() *Options { return p.budgets.forRequest(p.ctx.Request()) }

// Path is a view of the values that the route's wildcards matched.
func (p *Params) Path() View { return View{p, pathKind} }

// Query is a view of the URL's query. It never reads the body.
func (p *Params) Query() View { return View{p, queryKind} }

// Content is a view of the body: a form, also a multipart one, or a JSON object. Another
// type is a 415, before any of it is read.
func (p *Params) Content() View { return View{p, contentKind} }

// Form is a view of the texts of an urlencoded or a multipart form. Another type is a 415.
func (p *Params) Form() View { return View{p, formKind | multipartKind} }

// JSON is a view of the members of a JSON object. Another type is a 415.
// [Params.DecodeJSON] decodes the whole of it.
func (p *Params) JSON() View { return View{p, jsonKind} }

func (p *Params) queryPairs(r *http.Request) ([]pair, error) {
	p.parseQuery.Do(func() {
		if r.URL != nil {
			p.query, p.queryErr = parsePairs(p.few[:0], r.URL.RawQuery, SourceQuery, p.budgets.forRequest(r).MaxParams)
		}
	})
	return p.query, p.queryErr
}

// contentOf looks at r's Body only the first time, as reading replaces it.
func (p *Params) contentOf(r *http.Request) *content {
	if c := p.content.Load(); c != nil {
		return c
	}
	c := contentOf(r.Header)
	c.none = !hasBody(r)
	p.content.CompareAndSwap(nil, &c)
	return p.content.Load()
}
