package params

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/reqctx"
)

var (
	handleKey = reqctx.NewKey[*Params]("params")
	bodyKey   = reqctx.NewKey[*body]("params.body")
	uploadKey = reqctx.NewKey[*upload]("params.upload")
)

// Params are the parameters of one request. Its accessors ask the path, then
// the body of a POST, PUT or PATCH, then the query, see the package
// documentation; its methods Path, Query, Content, Form and JSON narrow them to
// one source. So a POST with a body that is neither a form nor JSON is answered
// 415 by the former, not by Path and Query. It belongs to its request and is safe
// for concurrent use, except for streams; as reading a body replaces the request's
// Body, nothing else may use that at the same time.
type Params struct {
	View

	ctx     *reqctx.Context
	budgets *budgets
	err     error // why there is no request, for every accessor

	content atomic.Pointer[content] // of the body, nil until it is asked for
	way     atomic.Int32            // in which the body is read

	parseQuery sync.Once
	query      []pair
	queryErr   error
	few        [6]pair // room for the query, mostly enough
}

// Provide registers the property "params", a handle whose value is a *Params, and the
// properties "params.body" and "params.upload", which read the body and a multipart form.
// A request that doesn't use its params pays nothing for them. Provide panics if
// [Options.Err] returns an error, and on a registry that has the properties already.
func Provide(reg *reqctx.Registry, o Options) {
	b, err := newBudgets(o)
	if err != nil {
		panic(err)
	}
	reqctx.Provide(reg, handleKey, reqctx.Prop[*Params]{
		Handle:  true,
		Resolve: func(ctx context.Context) (*Params, error) { return newParams(ctx, b) },
	})
	reqctx.Provide(reg, bodyKey, reqctx.Prop[*body]{Resolve: resolveBody})
	reqctx.Provide(reg, uploadKey, reqctx.Prop[*upload]{
		Resolve: resolveUpload,
		Close:   func(_ context.Context, u *upload, _ error) error { return u.close() },
	})
}

// From returns the parameters of ctx's request, without any I/O. The result is
// never nil: after an error its accessors return that error.
func From(ctx context.Context) (*Params, error) {
	p, err := handleKey.Get(ctx)
	if err != nil {
		p = &Params{err: err}
		p.View = View{p, anySource}
		return p, err
	}
	return p, nil
}

// Of is From for a handler of another router, which may work on a copy of the
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
		return nil, fmt.Errorf("params: %w", reqctx.ErrNoRequest)
	}
	p := &Params{ctx: c, budgets: b}
	p.View = View{p, anySource}
	return p, nil
}

// request is asked for each time: routing may have replaced it by a copy that
// knows its path values.
func (p *Params) request() (*http.Request, error) {
	if p.err != nil {
		return nil, p.err
	}
	r := p.ctx.Request()
	if r == nil {
		return nil, fmt.Errorf("params: %w", reqctx.ErrNoRequest)
	}
	return r, nil
}

// options is the budget of the request, which there is.
func (p *Params) options() *Options { return p.budgets.of(p.ctx.Request()) }

// Path is a view of the values that the route's wildcards matched.
func (p *Params) Path() View { return View{p, pathSource} }

// Query is a view of the URL's query. It never reads the body.
func (p *Params) Query() View { return View{p, querySource} }

// Content is a view of the body, be it a form, also a multipart one, or a JSON
// object. Another type is answered 415, before any of it is read.
func (p *Params) Content() View { return View{p, formSource | jsonSource} }

// Form is a view of an urlencoded or a multipart form, of which it shows the
// texts. Another type is answered 415.
func (p *Params) Form() View { return View{p, formSource} }

// JSON is a view of the members of the object that is the JSON body. Another
// type is answered 415. See [Params.DecodeJSON] for the whole of it.
func (p *Params) JSON() View { return View{p, jsonSource} }

func (p *Params) queryPairs(r *http.Request) ([]pair, error) {
	p.parseQuery.Do(func() {
		if r.URL != nil {
			p.query, p.queryErr = parsePairs(p.few[:0], r.URL.RawQuery, SourceQuery, p.budgets.of(r).MaxParams)
		}
	})
	return p.query, p.queryErr
}

// contentOf looks at r's Body only the first time, since reading replaces it.
func (p *Params) contentOf(r *http.Request) *content {
	if c := p.content.Load(); c != nil {
		return c
	}
	c := contentOf(r.Header)
	c.none = !hasBody(r)
	p.content.CompareAndSwap(nil, &c)
	return p.content.Load()
}
