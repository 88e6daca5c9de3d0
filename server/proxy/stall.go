package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// body is a request's body, whose reader may not wait for the client longer than stall. It
// remembers why it could not be read: what the client did is not the upstream's fault.
//
// The transport may still be reading when the request is over, which must then leave the
// connection's deadline alone.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration
	timed   bool // a deadline ends the stream, read or not: HTTP/2

	mu   sync.Mutex
	over bool
	err  error // of Read, but for io.EOF
}

// Read reads from the client. At the end, the deadline must not be left behind: net/http
// goes on to read, to notice when the client leaves. After an error it must: net/http goes on
// to wait for the rest.
func (b *body) Read(p []byte) (int, error) {
	b.limit(b.stall)
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF || b.timed {
		b.limit(0)
	}
	if err != nil && err != io.EOF { // which a body never wraps
		b.mu.Lock()
		b.err = err
		b.mu.Unlock()
	}
	return n, err
}

// limit sets the deadline, for 0 to none. Not every writer can.
func (b *body) limit(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	_ = b.control.SetReadDeadline(deadline(d))
}

// finish says that the request is over.
func (b *body) finish() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
}

// status returns what the body's failure is for the client, 0 if it didn't fail.
func (b *body) status() int {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var timeout net.Error
	switch {
	case b.err == nil:
		return 0
	case errors.As(b.err, &timeout) && timeout.Timeout():
		return http.StatusRequestTimeout
	default:
		return http.StatusBadRequest
	}
}

// writer is a response's writer, of which no write waits for the client longer than twice
// stall, but at least for stall. How long the upstream takes between two writes is not the
// client's fault.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	timed   bool      // as in body
	until   time.Time // the deadline that is set; of HTTP/1, where it is only for writes
}

func newWriter(w http.ResponseWriter, control *http.ResponseController, r *http.Request, stall time.Duration) *writer {
	out := &writer{ResponseWriter: w, control: control, stall: stall, timed: r.ProtoMajor >= 2}
	out.end()
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		out.until = time.Now().Add(s.WriteTimeout) // since about now
	}
	return out
}

// WriteHeader sends informational responses at once.
func (w *writer) WriteHeader(status int) {
	if status >= 200 && !w.timed { // to a buffer
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.begin()
	defer w.end()
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.begin()
	defer w.end()
	return w.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (w *writer) FlushError() error {
	w.begin()
	defer w.end()
	return w.control.Flush()
}

// Unwrap is for http.ResponseController, which hijacks.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// begin gives the next write its time. The deadline stays if it will do, as it does for a
// response that is sent at once: to move it costs about as much as to write a header.
func (w *writer) begin() {
	now := time.Now()
	if left := w.until.Sub(now); !w.timed && w.stall <= left && left <= 2*w.stall {
		return
	}
	w.until = now.Add(w.stall + w.stall/2)
	_ = w.control.SetWriteDeadline(w.until)
}

// end takes away a deadline that would end the stream while nobody writes.
func (w *writer) end() {
	if w.timed {
		_ = w.control.SetWriteDeadline(time.Time{})
	}
}

// deadline is the moment after d, none for 0.
func deadline(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}
