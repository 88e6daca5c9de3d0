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

// failingBody is a request body. Its first Read returns one byte. The second fails, as in net/http, after the request
// was cancelled.
type failingBody struct {
	begun  bool
	asked  <-chan struct{} // closed when the upstream has the request
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

// waiting starts an upstream that never responds, and a proxy in front of it. The upstream closes asked when it has a
// request.
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

// TestStalledBodyIsAnswered checks that a client that stops sending gets a 408, even if net/http cancels the request
// first.
func TestStalledBodyIsAnswered(t *testing.T) {
	p, asked := waiting(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", "/", &failingBody{asked: asked, cancel: cancel})
	w := httptest.NewRecorder()
	require.NotPanics(t, func() { p.ServeHTTP(w, r) })
	require.Equal(t, http.StatusRequestTimeout, w.Code)
}

// TestCancelledRequestGetsNoResponse checks requests whose client has gone, and requests that are cut off when the
// proxy stops.
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

// timedWriter is a ResponseWriter that records its write deadline.
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

// TestWriteDeadlines checks that each write may take between stall and 2*stall, and that most writes don't set a new
// deadline.
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
			<-time.After(10 * stall) // the upstream sends nothing for a long time
			require.NoError(t, out.FlushError())
			require.GreaterOrEqual(t, time.Until(w.until), stall)
		})
	}
}

// TestNoDeadlineBetweenHTTP2Writes checks that there is no deadline between two writes. Over HTTP/2, such a deadline
// would end the stream while the proxy waits for the upstream.
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
