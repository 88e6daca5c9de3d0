package proxy

import (
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/internal/graceful"
)

// responseWriter is a writer whose writes wait for the client for at least stall and at most twice stall. The time that
// the upstream takes between two writes doesn't count.
type responseWriter struct {
	http.ResponseWriter
	control http.ResponseController
	stall   time.Duration
	http2   bool      // a deadline ends the stream even if nothing is being written
	until   time.Time // the current deadline

	r      *http.Request
	body   *requestBody     // nil if the request has none
	server *graceful.Server // nil in another server
	began  bool             // the final header was written
}

func newResponseWriter(w http.ResponseWriter, r *http.Request, stall time.Duration) *responseWriter {
	out := &responseWriter{ResponseWriter: w, control: *http.NewResponseController(w), stall: stall, http2: r.ProtoMajor >= 2, r: r}
	if r.Body != nil && r.Body != http.NoBody {
		out.body = &requestBody{ReadCloser: r.Body, control: &out.control, stall: stall, http2: out.http2}
		_ = out.control.EnableFullDuplex() // otherwise net/http waits for the body before it sends the header
	}
	out.endWrite()
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		out.until = time.Now().Add(s.WriteTimeout) // net/http has set it when the request came
	}
	return out
}

// bodyOf returns the body of the request that w answers, or nil if it has no body.
func bodyOf(w http.ResponseWriter) *requestBody {
	for {
		switch outer := w.(type) {
		case *responseWriter:
			return outer.body
		case interface{ Unwrap() http.ResponseWriter }:
			w = outer.Unwrap()
		default:
			return nil
		}
	}
}

// WriteHeader sends informational responses at once.
func (w *responseWriter) WriteHeader(status int) {
	if status >= 200 {
		w.announceEnd()
	}
	if status >= 200 && !w.http2 { // net/http only buffers it
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.beginWrite()
	defer w.endWrite()
	w.ResponseWriter.WriteHeader(status)
}

// announceEnd announces, before the final header, the end of the connection if the proxy stops or if the request's body
// has not ended. The rest of the body must not be read as the next request.
func (w *responseWriter) announceEnd() {
	if w.began {
		return
	}
	w.began = true
	if w.server != nil && w.server.Ending() {
		w.Header()["Connection"] = []string{"close"}
	}
	if w.body == nil || w.body.hasEnded() {
		return
	}
	if !w.http2 && !w.body.skipShort(w.r) {
		w.Header()["Connection"] = []string{"close"}
	}
}

// Write writes a part of the response.
func (w *responseWriter) Write(p []byte) (int, error) {
	w.announceEnd()
	w.beginWrite()
	defer w.endWrite()
	return w.ResponseWriter.Write(p)
}

// prepareEnd prepares the connection for the end of the response, which net/http sends after the handler.
func (w *responseWriter) prepareEnd() {
	w.announceEnd()
	w.beginWrite()
	if w.body == nil {
		return
	}
	w.body.finish()
	if graceful.ClosesAtOnce(w.r) && !w.body.hasEnded() {
		graceful.DelayClose(w.ResponseWriter)
	}
}

// FlushError is called by [http.ResponseController].
func (w *responseWriter) FlushError() error {
	w.announceEnd()
	w.beginWrite()
	defer w.endWrite()
	return w.control.Flush()
}

// Unwrap is called by [http.ResponseController].
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// beginWrite sets the deadline of the next write. It keeps the current deadline if that is within bounds, since moving it
// takes as long as writing a header.
func (w *responseWriter) beginWrite() {
	now := time.Now()
	if left := w.until.Sub(now); !w.http2 && w.stall <= left && left <= 2*w.stall {
		return
	}
	w.until = now.Add(w.stall + w.stall/2)
	_ = w.control.SetWriteDeadline(w.until)
}

// endWrite removes the deadline over HTTP/2, where it would end the stream between two writes.
func (w *responseWriter) endWrite() {
	if w.http2 {
		_ = w.control.SetWriteDeadline(time.Time{})
	}
}
