package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A client that still sends what no handler will read gets lingering to take its answer,
// before the connection is closed and what it sends resets it. The rest of a short body that
// nobody has read is waited for so long as promptly, which keeps the connection.
const (
	lingering = 500 * time.Millisecond
	promptly  = 50 * time.Millisecond
	shortBody = 64 << 10
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
	timed   bool   // a deadline ends the stream, read or not: HTTP/2
	sent    bool   // to an upstream, which may answer before its end
	atEnd   func() // net/http has the trailers then

	reading sync.Mutex // held by Read

	asked    atomic.Bool  // Read waits for the client
	last     atomic.Int64 // when Read returned, in nanoseconds since 1970
	answered atomic.Bool  // the upstream has sent its header

	mu    sync.Mutex
	over  bool
	ended bool  // it was read to its end
	err   error // of Read, but for io.EOF
}

// Read reads from the client. At the end, the deadline must not be left behind: net/http
// goes on to read, to notice when the client leaves.
func (b *body) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if !b.limit(b.stall) {
		return 0, http.ErrBodyReadAfterClose
	}
	b.asked.Store(true)
	n, err := b.ReadCloser.Read(p)
	b.last.Store(time.Now().UnixNano())
	b.asked.Store(false)
	if err == io.EOF || b.timed {
		b.limit(0)
	}
	if err == io.EOF && b.atEnd != nil {
		b.atEnd()
	}
	if err != nil {
		b.mu.Lock()
		if err == io.EOF { // which a body never wraps
			b.ended = true
		} else {
			b.err = err
		}
		b.mu.Unlock()
	}
	return n, err
}

// limit sets the deadline, for 0 to none, and returns whether the request isn't over. Not
// every writer can.
func (b *body) limit(d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return false
	}
	_ = b.control.SetReadDeadline(deadline(d))
	return true
}

// errUnread means that an upstream didn't take the request's body.
var errUnread = fmt.Errorf("the upstream doesn't read the request's body: %w", context.DeadlineExceeded)

// watch calls silent if the upstream, which is sent the body, neither reads of it nor answers for so
// long; how long it may take to answer once it has all of it is the transport's affair. The caller
// calls stop when the request is over.
func (b *body) watch(timeout time.Duration, silent func()) (stop func()) {
	var (
		mu      sync.Mutex
		stopped bool
		timer   *time.Timer
	)
	b.last.Store(time.Now().UnixNano())
	look := func() {
		idle := time.Since(time.Unix(0, b.last.Load()))
		switch {
		case b.answered.Load(), b.hasEnded():
			return
		case b.asked.Load(): // it waits for the client
			idle = 0
		case idle >= timeout:
			silent()
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			timer.Reset(timeout - idle)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(timeout, look)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// hasEnded reports whether the body was read to its end.
func (b *body) hasEnded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// skim reads a short body that no upstream gets, if it is there, and returns whether the
// connection can be kept. One that the client has not sent yet because it expects to be
// asked for it isn't asked for. A deadline that has passed keeps nothing: at the body's end,
// net/http goes on to read, and takes it for the client's end.
func (b *body) skim(r *http.Request) bool {
	if b.sent || r.ContentLength > shortBody || r.Header.Get("Expect") != "" {
		return false
	}
	until, p := time.Now().Add(promptly), buffers.Get()
	defer buffers.Put(p)
	for rest := shortBody; rest >= 0; {
		if b.stall = time.Until(until); b.stall <= 0 {
			return false
		}
		n, err := b.Read(p)
		if err != nil {
			break
		}
		rest -= n
	}
	return b.hasEnded() && time.Now().Before(until)
}

// finish says that the request is over, and ends a Read under way. Of a body that was not
// read to its end, net/http goes on to read some.
func (b *body) finish() {
	b.mu.Lock()
	b.over = true
	ended := b.ended
	b.mu.Unlock()
	switch {
	case ended:
	case b.timed:
		_ = b.ReadCloser.Close()
	case b.control.SetReadDeadline(time.Unix(1, 0)) == nil:
		b.reading.Lock()
		_ = b.control.SetReadDeadline(deadline(lingering))
		b.reading.Unlock()
	}
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

	r     *http.Request
	body  *body        // of the request, nil if it has none
	last  *atomic.Bool // the connection ends with this response
	began bool         // the final header was written
	early bool         // the upstream has it before the body's end: what comes goes on at once
}

func newWriter(w http.ResponseWriter, control *http.ResponseController, r *http.Request, stall time.Duration) *writer {
	out := &writer{ResponseWriter: w, control: control, stall: stall, timed: r.ProtoMajor >= 2, r: r}
	if r.Body != nil && r.Body != http.NoBody {
		out.body = &body{ReadCloser: r.Body, control: control, stall: stall, timed: out.timed}
		_ = control.EnableFullDuplex() // net/http would wait for the body before the header goes out
	}
	out.end()
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		out.until = time.Now().Add(s.WriteTimeout) // since about now
	}
	return out
}

// bodyOf returns the body of the request that is answered by w, nil if it has none.
func bodyOf(w http.ResponseWriter) *body {
	for {
		switch outer := w.(type) {
		case *writer:
			return outer.body
		case interface{ Unwrap() http.ResponseWriter }:
			w = outer.Unwrap()
		default:
			return nil
		}
	}
}

// WriteHeader sends informational responses at once, and the header of one that comes before
// the end of the request's body.
func (w *writer) WriteHeader(status int) {
	if status >= 200 {
		w.announce()
	}
	if status >= 200 && !w.timed && !w.early { // to a buffer
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.begin()
	defer w.end()
	w.ResponseWriter.WriteHeader(status)
	if w.early {
		_ = w.control.Flush()
	}
}

// announce says before the final header that the connection ends, if it is the last one, or
// if the request's body has not ended: the client may be stuck in it, and what it still
// sends must not be taken for its next request.
func (w *writer) announce() {
	if w.began {
		return
	}
	w.began = true
	if !w.timed && w.last != nil && w.last.Load() {
		w.Header()["Connection"] = []string{"close"}
	}
	if w.body == nil || w.body.hasEnded() {
		return
	}
	w.early = w.body.sent
	if w.timed {
		return
	}
	if !w.body.skim(w.r) {
		w.Header()["Connection"] = []string{"close"}
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.announce()
	w.begin()
	defer w.end()
	n, err := w.ResponseWriter.Write(p)
	if err == nil && w.early {
		err = w.control.Flush()
	}
	return n, err
}

// finish is for what net/http has still to do.
func (w *writer) finish() {
	w.announce()
	w.begin()
	if w.body != nil {
		w.body.finish()
	}
}

// FlushError is for http.ResponseController.
func (w *writer) FlushError() error {
	w.announce()
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
