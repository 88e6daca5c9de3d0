package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
)

// requestBody is a request's body as the client sends it.
type requestBody struct {
	io.ReadCloser
	ended atomic.Bool // all of it was read
	// timedOut means that a read deadline has passed: over HTTP/1, net/http then cancels the
	// request's context, as if the client had gone.
	timedOut atomic.Bool
}

// Read implements [io.Reader].
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.ended.Store(true)
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.timedOut.Store(true)
	}
	return n, err
}

// watchBody replaces the body of r by one that x keeps. Nested servers share one.
func (x *exchange) watchBody(r *http.Request) {
	if outer := exchangeOf(x.Context); outer != nil {
		x.body = outer.body
		return
	}
	if r.Body != nil && r.Body != http.NoBody {
		x.body = &requestBody{ReadCloser: r.Body}
		r.Body = x.body
	}
}
