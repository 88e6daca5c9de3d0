package params

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// body is the value of the property "params.body". It doesn't change, but that the
// JSON in it is parsed when it is asked for.
type body struct {
	raw   []byte // inflated
	taken bool   // by ParseForm, so that raw is lost

	kind    kinds
	form    []pair
	formErr error // raw isn't what its type says

	parseJSON  sync.Once
	members    map[string]jsontext.Value // of a JSON object
	membersErr error
}

// How the body is being read: once the first has asked for it, it is held in memory
// or it is a stream.
const (
	unread int32 = iota
	held
	streamed
)

// claim makes the body one that is read in this way, if it isn't already one that is
// read in another.
func (p *Params) claim(way int32) bool {
	return p.way.CompareAndSwap(unread, way) || p.way.Load() == way
}

// Body returns the bytes of the request's body, inflated, whatever its type and
// method, and reads them if nothing has yet. The bytes are shared and must not be
// changed. After a ParseForm that read the body, and after it was read as a stream,
// as a multipart form is, the error is [ErrBodyTaken].
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
// up to Options.MaxStream: for what need not or can't be held in memory. What its
// Read returns for a client's mistake is an [*Error]. If the body is in memory
// already, the stream is of that; otherwise Body, the views of the body and a second
// Stream return [ErrBodyTaken] afterwards. It is for one goroutine at a time.
func (p *Params) Stream() (io.Reader, error) {
	r, err := p.request()
	if err != nil {
		return nil, err
	}
	if p.way.Load() == held {
		data, err := p.Body()
		return bytes.NewReader(data), err
	}
	c, o := p.contentOf(r), p.budgets.of(r)
	if c.none {
		return http.NoBody, nil
	}
	if err := c.check(anyKind, o); err != nil {
		return nil, err
	}
	s, err := p.stream(p.ctx, r, c, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// stream begins to read the body as a stream.
func (p *Params) stream(ctx context.Context, r *http.Request, c *content, o *Options) (*stream, error) {
	if r.ContentLength > o.MaxStream {
		return nil, bodyTooLarge(o.MaxStream, nil)
	}
	if !p.way.CompareAndSwap(unread, streamed) {
		return nil, ErrBodyTaken
	}
	source := io.Reader(r.Body)
	if shared, ok := r.Body.(*sharedBody); ok {
		source = shared.detach()
	} else {
		r.Body = &replayBody{err: ErrBodyTaken, origin: r.Body}
	}
	if source == nil {
		return nil, ErrBodyTaken
	}
	w := newBodyReader(ctx, r, source, o, o.MaxStream)
	return &stream{from: w.content(c.codings, o, o.MaxStream)}, nil
}

// stream makes the errors of a body those of this package.
type stream struct {
	from io.Reader
	err  error
}

func (s *stream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.from.Read(p)
	if err != nil && err != io.EOF {
		err = readError(err)
	}
	s.err = err
	return n, err
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
	unfit := c.check(want, p.budgets.of(r))
	if unfit != nil && r.ContentLength != 0 {
		return nil, unfit
	}
	if !p.claim(held) {
		return nil, ErrBodyTaken
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
	c, o := p.contentOf(r), p.budgets.of(r)
	b := &body{kind: c.kind}
	if b.kind == formKind && c.codings == "" && formWasParsed(r) {
		b.taken = true
		b.form, b.formErr = pairsOf(r.PostForm, SourceForm, o)
		return b, nil
	}
	coding := c.codings
	if coding != "" && o.inflaterOf(coding) == nil {
		coding = "" // only to see whether there is anything
	}
	if b.raw, err = readBody(ctx, r, coding, o); err != nil {
		return nil, err
	}
	if b.kind == formKind {
		b.form, b.formErr = parsePairs(nil, string(b.raw), SourceForm, o.MaxParams)
	}
	return b, nil
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
