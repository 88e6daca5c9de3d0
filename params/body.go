package params

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// body is the value of the property "params.body". It is immutable, except that JSON in
// it is parsed on first use.
type body struct {
	raw   []byte // inflated
	taken bool   // by ParseForm, so that raw is lost

	kind    kinds
	form    []pair
	formErr error

	parseJSON  sync.Once
	members    map[string]jsontext.Value // of a JSON object
	membersErr error
}

// The first reader of a body decides whether it is held in memory or streamed.
const (
	unread int32 = iota
	held
	streamed
)

// Body returns the bytes of the request's body, inflated, whatever its type and method.
// The bytes are shared and must not be changed. After a ParseForm that read the body, and
// after it was read as a stream, as a multipart form is, the error is [ErrBodyTaken].
func (p *Params) Body() ([]byte, error) {
	b, err := p.body(anyKind)
	if err != nil {
		return nil, err
	}
	if b.taken {
		return nil, ErrBodyTaken
	}
	return b.raw, nil
}

// Stream returns the body to be read once as it comes, inflated, whatever its type,
// up to Options.MaxStream: for content that need not or can't be held in memory. Its
// Read returns an [*Error] for a mistake of the client. If the body is in memory
// already, the stream is of that; otherwise Body, the views of the body and a second
// Stream return [ErrBodyTaken] afterwards. It is for one goroutine at a time.
func (p *Params) Stream() (io.Reader, error) {
	r, err := p.request()
	if err != nil {
		return nil, err
	}
	return p.stream(r, anyKind)
}

// stream returns the body, if it is of a wanted kind, to be read once as it comes.
func (p *Params) stream(r *http.Request, want kinds) (io.Reader, error) {
	c, o := p.contentOf(r), p.budgets.forRequest(r)
	if err := c.checkKind(want, o); err != nil || c.none {
		return http.NoBody, err
	}
	if r.ContentLength > o.MaxStream && p.way.Load() == unread {
		return nil, bodyTooLargeError(o.MaxStream)
	}
	if !p.way.CompareAndSwap(unread, streamed) {
		data, err := p.Body() // if it is held
		return bytes.NewReader(data), err
	}
	body, err := share(r, nil).detach()
	if err != nil {
		return nil, err
	}
	return newBodyReader(p.ctx, body, o, o.MaxStream).inflatedReader(c.codings, o, o.MaxStream), nil
}

// body returns the request's body if it is of a wanted kind. Another kind is refused
// before it is read. An empty body is of every kind.
func (p *Params) body(want kinds) (*body, error) {
	r, err := p.request()
	if err != nil {
		return nil, err
	}
	c := p.contentOf(r)
	if c.none {
		return &body{}, nil
	}
	unfit := c.checkKind(want, p.budgets.forRequest(r))
	if unfit != nil && r.ContentLength != 0 {
		return nil, unfit
	}
	if !p.way.CompareAndSwap(unread, held) && p.way.Load() == streamed {
		return nil, ErrBodyTaken
	}
	// Whether a wrapped body of declared length 0 is empty is only known after reading.
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
	c, o := p.contentOf(r), p.budgets.forRequest(r)
	b := &body{kind: c.kind}
	if b.kind == formKind && c.codings == "" && formWasParsed(r) {
		b.taken = true
		b.form, b.formErr = pairsOf(r.PostForm, SourceForm, o)
		return b, nil
	}
	coding := c.codings
	if coding != "" && o.inflaterOf(coding) == nil {
		coding = "" // only to see whether it is empty
	}
	if b.raw, err = readBody(ctx, r, coding, o); err != nil {
		return nil, err
	}
	if b.kind == formKind {
		b.form, b.formErr = parsePairs(nil, string(b.raw), SourceForm, o.MaxParams)
	}
	return b, nil
}

// formWasParsed reports whether ParseForm has read r's body: for other methods, also for
// QUERY, it sets PostForm without reading.
func formWasParsed(r *http.Request) bool {
	return r.PostForm != nil && hasContent(r.Method) && r.Method != methodQuery
}

const methodQuery = "QUERY" // RFC 10008

// hasContent reports whether a method gives the body a meaning.
func hasContent(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, methodQuery:
		return true
	}
	return false
}
