package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// failingBody is a body of one byte whose next Read fails as that of net/http: the request is
// cancelled before Read returns.
type failingBody struct {
	begun  bool
	asked  <-chan struct{} // the upstream has the request
	cancel func()
}

func (b *failingBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		return copy(p, "x"), nil
	}
	<-b.asked
	b.cancel()
	<-time.After(50 * time.Millisecond)
	return 0, os.ErrDeadlineExceeded
}

func (*failingBody) Close() error { return nil }

// waiting starts a proxy before an upstream over HTTP/2 that waits for the end of a request.
func waiting(t *testing.T) (p *running, asked chan struct{}) {
	asked = make(chan struct{})
	up := behindHTTP2(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	return run(t, parse(t, "upstreams: {main: {url: %q, http2: cleartext}}\n", up)), asked
}

// A client that stops sending gets a response even if its request is cancelled first.
func TestStalledBodyIsAnswered(t *testing.T) {
	p, asked := waiting(t)
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", "/", &failingBody{asked: asked, cancel: cancel})
	w := httptest.NewRecorder()
	require.NotPanics(t, func() { p.ServeHTTP(w, r) })
	require.Equal(t, http.StatusRequestTimeout, w.Code)
}

// A client that has gone gets nothing.
func TestGoneClientGetsNoResponse(t *testing.T) {
	p, asked := waiting(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	w := httptest.NewRecorder()
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	})
	require.False(t, w.Flushed)
}
