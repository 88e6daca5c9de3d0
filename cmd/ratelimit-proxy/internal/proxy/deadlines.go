package proxy

import (
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/internal/graceful"
)

// responseWriter is a ResponseWriter with a deadline for each write, which is between stall and twice stall. The time
// between two writes, in which the proxy waits for the upstream, doesn't count.
type responseWriter struct {
	http.ResponseWriter
	control http.ResponseController
	stall   time.Duration
	http2   bool      // over HTTP/2, a deadline ends the stream even if no write is in progress
	until   time.Time // the current deadline

	r      *http.Request
	body   *requestBody     // nil if the request has no body
	server *graceful.Server // nil if the proxy runs in another server
	began  bool             // the final header was announced or written
}

func newResponseWriter(w http.ResponseWriter, r *http.Request, stall time.Duration) *responseWriter {
	out := &responseWriter{ResponseWriter: w, control: *http.NewResponseController(w), stall: stall, http2: r.ProtoMajor >= 2, r: r}
	if r.Body != nil && r.Body != http.NoBody {
		out.body = &requestBody{ReadCloser: r.Body, control: &out.control, stall: stall, http2: out.http2}
		_ = out.control.EnableFullDuplex() // otherwise net/http waits for the body before it sends the header
	}
	out.endWrite()
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		out.until = time.Now().Add(s.WriteTimeout) // net/http has set this deadline when the request arrived
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

// WriteHeader sets a deadline for an informational response (1xx), which net/http sends at once.
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

// announceEnd is called before the final header. It adds Connection: close if the proxy stops, or if the request's
// body has not ended, because the rest of the body must not be read as the next request.
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

// prepareEnd sets the deadlines for the end of the response, which net/http writes after the handler has returned.
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

// FlushError implements the Flush method of [http.ResponseController].
func (w *responseWriter) FlushError() error {
	w.announceEnd()
	w.beginWrite()
	defer w.endWrite()
	return w.control.Flush()
}

// Unwrap is called by [http.ResponseController].
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// beginWrite sets the deadline of the next write. It keeps the current deadline if that is between stall and twice
// stall, because setting a deadline takes as long as writing a header.
func (w *responseWriter) beginWrite() {
	now := time.Now()
	if left := w.until.Sub(now); !w.http2 && w.stall <= left && left <= 2*w.stall {
		return
	}
	w.until = now.Add(w.stall + w.stall/2)
	_ = w.control.SetWriteDeadline(w.until)
}

// endWrite removes the deadline if the request uses HTTP/2. There, the deadline would end the stream between two
// writes.
func (w *responseWriter) endWrite() {
	if w.http2 {
		_ = w.control.SetWriteDeadline(time.Time{})
	}
}
