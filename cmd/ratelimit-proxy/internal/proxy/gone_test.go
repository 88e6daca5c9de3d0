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

// waiting starts a proxy before an upstream that waits for the end of a request.
func waiting(t *testing.T, http2 bool) (p *running, asked chan struct{}) {
	asked = make(chan struct{})
	handle := func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	if http2 {
		return run(t, parse(t, "upstreams: {main: {url: %q, http2: cleartext}}\n", behindHTTP2(t, handle))), asked
	}
	return run(t, parse(t, "upstreams: {main: {url: %q}}\n", behind(t, handle).URL)), asked
}

// A client that stops sending gets a response even if its request is cancelled first.
func TestStalledBodyIsAnswered(t *testing.T) {
	p, asked := waiting(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", "/", &failingBody{asked: asked, cancel: cancel})
	w := httptest.NewRecorder()
	require.NotPanics(t, func() { p.ServeHTTP(w, r) })
	require.Equal(t, http.StatusRequestTimeout, w.Code)
}

// A client that has gone gets nothing, nor does one that a stop cuts off. Neither is the upstream's fault.
func TestCancelledRequestGetsNoResponse(t *testing.T) {
	for _, cause := range []error{context.Canceled, errStopped} {
		for _, http2 := range []bool{false, true} {
			p, asked := waiting(t, http2)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-asked; cancel(cause) }()
			w := httptest.NewRecorder()
			require.PanicsWithValue(t, http.ErrAbortHandler, func() {
				p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
			}, "%v %t", cause, http2)
			require.False(t, w.Flushed)
		}
	}
}
