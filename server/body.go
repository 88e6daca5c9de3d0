package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
)

// requestBody is a request's body as the client sends it. It records whether a read deadline
// has passed: over HTTP/1, net/http then cancels the request's context, as if the client had gone.
type requestBody struct {
	io.ReadCloser
	timedOut atomic.Bool
}

// Read implements [io.Reader].
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
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
