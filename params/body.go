package params

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// body is the value of the property "params.body". It is immutable, except that JSON in it is parsed on first use.
type body struct {
	raw []byte // inflated

	form    formData
	formErr error

	parseJSON sync.Once
	json      *jsonValue // the JSON object in the body
	jsonErr   error
}

// The first reader of a body decides whether it is held in memory or streamed.
const (
	unread int32 = iota
	held
	streamed
)

// Body returns the inflated bytes of the request's body, whatever its type and method. The bytes are shared and
// must not be changed. The error is [ErrBodyTaken] if the body was read as a stream, as multipart forms are.
func (p *Params) Body() ([]byte, error) {
	b, err := p.body(anyKind)
	if err != nil {
		return nil, err
	}
	return b.raw, nil
}

// Stream returns a reader of the inflated body, whatever its type, up to Options.MaxStream. It is for content
// that need not be held in memory, or is too large for that. Read returns an [*Error] for a mistake of the
// client. If the body is in memory already, the reader reads it from there. Otherwise, Body, the views of the
// body and a second Stream return [ErrBodyTaken] afterwards. The reader is not safe for concurrent use.
func (p *Params) Stream() (io.Reader, error) { return p.stream(anyKind) }

// stream returns a reader of the body if it is of a wanted kind.
func (p *Params) stream(want kinds) (io.Reader, error) {
	r, c, err := p.describe()
	if err == nil {
		err = c.checkKind(want)
	}
	if err != nil || c.none {
		return http.NoBody, err
	}
	o := p.options()
	if r.ContentLength > o.MaxStream && p.way.Load() == unread {
		return nil, bodyTooLargeError(o.MaxStream)
	}
	if !p.way.CompareAndSwap(unread, streamed) {
		data, err := p.Body()
		return bytes.NewReader(data), err
	}
	if r.MultipartForm != nil { // ParseMultipartForm or MultipartReader was called
		return nil, ErrBodyTaken
	}
	body, err := share(r, nil).detach()
	if err != nil {
		return nil, err
	}
	return newBodyReader(p.ctx, body, o, o.MaxStream).inflatedReader(c.codings), nil
}

// body returns the request's body if it is of a wanted kind. Another kind is refused before it is read. An empty
// body is of every kind.
func (p *Params) body(want kinds) (*body, error) {
	r, c, err := p.describe()
	if err != nil || c.none {
		return &body{}, err
	}
	unfit := c.checkKind(want)
	if unfit != nil && r.ContentLength != 0 {
		return nil, unfit
	}
	if !p.way.CompareAndSwap(unread, held) && p.way.Load() == streamed {
		return nil, ErrBodyTaken
	}
	b, err := bodyKey.Get(p.ctx)
	if err != nil {
		return nil, err
	}
	if unfit != nil && len(b.raw) > 0 { // if a middleware has wrapped the body, its declared length 0 may be wrong
		return nil, unfit
	}
	return b, nil
}

func resolveBody(ctx context.Context) (*body, error) {
	p, _ := From(ctx)
	r, c, err := p.describe()
	if err != nil {
		return nil, err
	}
	b, o := &body{}, p.options()
	isForm := c.kind == formKind
	coding := c.codings
	if inflaters[coding] == nil {
		coding = "" // the body is only read to see whether it is empty
	}
	if b.raw, err = readBody(ctx, r, coding, o); err == nil && isForm {
		b.form.pairs, b.formErr = parsePairs(nil, string(b.raw), SourceForm, o.MaxParams)
	}
	return b, err
}

// formWasParsed reports whether ParseForm has read r's body. For other methods, also for QUERY, ParseForm sets
// PostForm to an empty map without reading. A middleware may have changed the method after ParseForm.
func formWasParsed(r *http.Request) bool {
	return len(r.PostForm) > 0 || r.PostForm != nil && hasContent(r.Method) && r.Method != methodQuery
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
