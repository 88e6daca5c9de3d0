package params

import (
	"context"
	"net/http"
)

// body is the value of the property "params.body". It doesn't change.
type body struct {
	raw   []byte
	taken bool // by ParseForm, so that raw is lost

	kind     kinds
	parseErr error // raw isn't what its type says
	form     []pair
	doc      document
}

// Body returns the bytes of the request's body, whatever its type and method,
// and reads them if nothing has yet. The bytes are shared and must not be
// changed. After a ParseForm that read the body the error is [ErrBodyTaken].
func (p *Params) Body() ([]byte, error) {
	b, err := p.body(formKind | jsonKind | otherKind)
	if err != nil {
		return nil, err
	}
	if b.taken {
		return nil, ErrBodyTaken
	}
	return b.raw, nil
}

// body returns the request's body if it is of a wanted kind. One that isn't is
// refused before it is read. An empty body is of every kind.
func (p *Params) body(want kinds) (*body, error) {
	r, err := p.request()
	if err != nil {
		return nil, err
	}
	c := p.contentOf(r)
	if c.none {
		return &body{}, nil
	}
	unfit := c.check(want)
	if unfit != nil && r.ContentLength != 0 {
		return nil, unfit
	}
	// A wrapped body of declared length 0 is only known to be empty after reading.
	b, err := bodyKey.Get(p.ctx)
	if err != nil {
		return nil, err
	}
	if unfit != nil && len(b.raw) > 0 {
		return nil, unfit
	}
	return b, nil
}

func resolveBody(ctx context.Context) (*body, error) {
	p, err := From(ctx)
	if err != nil {
		return nil, err
	}
	r, err := p.request()
	if err != nil {
		return nil, err
	}
	b := &body{kind: p.contentOf(r).kind}
	if b.kind == formKind && formWasParsed(r) {
		b.taken = true
		b.form, b.parseErr = pairsOf(r.PostForm, p.options)
		return b, nil
	}
	if b.raw, err = readBody(ctx, r, p.options.MaxBody); err != nil {
		return nil, err
	}
	b.parse(p.options)
	return b, nil
}

func (b *body) parse(o *Options) {
	switch b.kind {
	case formKind:
		b.form, b.parseErr = parsePairs(string(b.raw), SourceForm, o.MaxParams)
	case jsonKind:
		b.doc, b.parseErr = scan(b.raw, o)
	}
}

// formWasParsed reports whether ParseForm has read r's body: it does that for
// these methods only, and for others sets PostForm without reading.
func formWasParsed(r *http.Request) bool {
	return r.PostForm != nil && hasContent(r.Method)
}

// hasContent reports whether a method's meaning lies in the body.
func hasContent(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}
