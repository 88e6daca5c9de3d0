package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// body is a request's body, whose reader may not wait for the client longer than stall. It
// remembers why it could not be read: what the client did is not the upstream's fault.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration
	err     error // of Read, but for io.EOF
}

// Read reads from the client. At the end, the deadline must not be left behind: net/http
// goes on to read, to notice when the client leaves.
func (b *body) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(b.stall)) // not every writer can
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{})
		if err != io.EOF { // which a body never wraps
			b.err = err
		}
	}
	return n, err
}

// status returns what the body's failure is for the client, 0 if it didn't fail.
func (b *body) status() int {
	var timeout net.Error
	switch {
	case b == nil || b.err == nil:
		return 0
	case errors.As(b.err, &timeout) && timeout.Timeout():
		return http.StatusRequestTimeout
	default:
		return http.StatusBadRequest
	}
}

// writer is a response's writer, of which no write waits for the client longer than stall.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
}

func (w *writer) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.stall))
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController, which flushes and hijacks.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// done takes the deadline away, which is the connection's and not the request's.
func (w *writer) done() { _ = w.control.SetWriteDeadline(time.Time{}) }
