package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// failingBody is a body of one byte. Its second Read fails like that of net/http: the request is cancelled before
// Read returns.
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

// A client that has gone, or that a stop cuts off, gets no response. This does not count as a fault of the upstream.
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

// timedWriter is a response's writer with a deadline.
type timedWriter struct {
	*httptest.ResponseRecorder
	until time.Time
	sets  int
}

func (w *timedWriter) SetWriteDeadline(t time.Time) error {
	w.until = t
	w.sets++
	return nil
}

// Each write has between stall and twice stall, and the deadline is not moved for each write.
func TestWriteDeadlines(t *testing.T) {
	const stall = time.Minute
	for name, own := range map[string]time.Duration{"our server": 2 * stall, "another's": time.Second, "none": 0} {
		synctest.Test(t, func(t *testing.T) {
			w := &timedWriter{ResponseRecorder: httptest.NewRecorder()}
			r := httptest.NewRequest("GET", "/", nil)
			if own > 0 {
				w.until = time.Now().Add(own)
				r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{WriteTimeout: own}))
			}
			out := newResponseWriter(w, r, stall)
			out.WriteHeader(200)
			require.Zero(t, w.sets, "it is not sent yet")
			for i := range 600 {
				_, err := out.Write([]byte("x"))
				require.NoError(t, err)
				left := time.Until(w.until)
				require.True(t, stall <= left && left <= 2*stall, "%s: %v left at write %d", name, left, i)
				if i == 0 && own == 2*stall {
					require.Zero(t, w.sets, "net/http has set one that will do")
				}
				<-time.After(time.Duration(i%3) * time.Second)
			}
			require.Less(t, w.sets, 40)
			<-time.After(10 * stall) // the upstream takes its time
			require.NoError(t, out.FlushError())
			require.GreaterOrEqual(t, time.Until(w.until), stall)
		})
	}
}

// Over HTTP/2, a deadline that passes ends the stream even if no write is in flight.
func TestNoDeadlineBetweenHTTP2Writes(t *testing.T) {
	w := &timedWriter{ResponseRecorder: httptest.NewRecorder(), until: time.Now()}
	r := httptest.NewRequest("GET", "/", nil)
	r.ProtoMajor = 2
	out := newResponseWriter(w, r, time.Minute)
	require.True(t, w.until.IsZero())
	for range 3 {
		_, err := out.Write([]byte("x"))
		require.NoError(t, err)
		require.True(t, w.until.IsZero())
	}
	require.Equal(t, 1+2*3, w.sets)
	out.beginWrite()
	require.False(t, w.until.IsZero())
}
