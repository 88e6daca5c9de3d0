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

const (
	// lingerTime is how long a client that still sends a body may do so after its response,
	// before the connection is closed and resets what the client sends.
	lingerTime = 500 * time.Millisecond
	// skipTime is how long the rest of a short body is waited for to keep the connection.
	skipTime  = 50 * time.Millisecond
	shortBody = 64 << 10
)

// requestBody is a request's body that waits for the client at most for stall. It keeps the
// error of reading, which is the client's fault and not the upstream's.
//
// The transport may still read when the request has ended. It must then leave the connection's
// deadline alone.
type requestBody struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration
	http2   bool   // a deadline that passes ends the stream, read or not
	sent    bool   // to an upstream, which may answer before the end
	atEnd   func() // called once net/http has the trailers; may be nil

	reading sync.Mutex // held by Read

	waiting  atomic.Bool  // Read waits for the client
	lastRead atomic.Int64 // when Read returned, in nanoseconds since 1970
	answered atomic.Bool  // the upstream has sent its header
	closed   atomic.Bool  // by the transport

	mu        sync.Mutex
	over      bool  // the request has ended
	unwatched bool  // watch was stopped
	readAll   bool  // Read has returned io.EOF
	err       error // of Read, other than io.EOF
}

// Read reads from the client. At the end it removes the deadline: net/http goes on reading, to
// notice when the client leaves.
func (b *requestBody) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.closed.Load() || !b.setDeadline(b.stall) {
		return 0, http.ErrBodyReadAfterClose
	}
	b.waiting.Store(true)
	n, err := b.ReadCloser.Read(p)
	b.lastRead.Store(time.Now().UnixNano())
	b.waiting.Store(false)
	if err == io.EOF || b.http2 {
		b.setDeadline(0)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch err {
	case nil:
	case io.EOF: // which a body never wraps
		b.readAll = true
		if b.atEnd != nil {
			b.atEnd()
		}
	default:
		b.err = err
	}
	return n, err
}

// Close makes later Reads fail. It is for the transport, which closes the body when it has a
// response. It does not close the client's body, because that waits for a Read in flight, and so
// for the client; net/http closes it after the handler has returned. (Before Go 1.27,
// [httputil.ReverseProxy] kept Close from the body.)
func (b *requestBody) Close() error {
	b.closed.Store(true)
	return nil
}

// setDeadline sets the deadline, none for 0, and reports whether the request is still in
// flight. Not every writer supports it.
func (b *requestBody) setDeadline(d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return false
	}
	_ = b.control.SetReadDeadline(deadlineAfter(d))
	return true
}

// errUnread is the cause that cancels a request whose body the upstream doesn't read.
var errUnread = fmt.Errorf("the upstream doesn't read the request's body: %w", context.DeadlineExceeded)

// watchUpstream calls silent once the upstream has neither read from the body nor answered for a
// timeout. The time it may take after the end of the body is up to the transport. The caller
// calls stop when the request has ended.
func (b *requestBody) watchUpstream(timeout time.Duration, silent func()) (stop func()) {
	b.lastRead.Store(time.Now().UnixNano())
	var timer *time.Timer
	check := func() {
		idle := time.Since(time.Unix(0, b.lastRead.Load()))
		switch {
		case b.answered.Load(), b.hasEnded():
			return
		case b.waiting.Load():
			idle = 0
		case idle >= timeout:
			silent()
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.unwatched {
			timer.Reset(timeout - idle)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	timer = time.AfterFunc(timeout, check)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.unwatched = true
		timer.Stop()
	}
}

// hasEnded reports whether the body was read to its end.
func (b *requestBody) hasEnded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readAll
}

// skipShort reads a short body that no upstream gets, if it has arrived, and reports whether the
// connection can be kept. It doesn't ask a client for a body that waits to be asked for it. After
// a deadline that has passed, the connection can't be kept: net/http goes on reading at the
// body's end, and takes it for the client's end.
func (b *requestBody) skipShort(r *http.Request) bool {
	if b.sent || r.ContentLength > shortBody || r.Header.Get("Expect") != "" {
		return false
	}
	until, p := time.Now().Add(skipTime), buffers.Get()
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

// finish ends the request, and a Read that is in flight. net/http goes on reading some of a body
// that was not read to its end.
func (b *requestBody) finish() {
	b.mu.Lock()
	b.over = true
	ended := b.readAll
	b.mu.Unlock()
	switch {
	case ended:
	case b.http2:
		_ = b.ReadCloser.Close()
	case b.control.SetReadDeadline(time.Unix(1, 0)) == nil:
		b.reading.Lock()
		_ = b.control.SetReadDeadline(deadlineAfter(lingerTime))
		b.reading.Unlock()
	}
}

// errorStatus returns the status for a body that could not be read, 0 if it could. If the request was
// cancelled, it waits for a Read: net/http cancels a request before a Read that fails has returned.
func (b *requestBody) errorStatus(cancelled bool) int {
	if b == nil {
		return 0
	}
	if cancelled {
		b.reading.Lock()
		defer b.reading.Unlock()
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

// deadlineAfter returns the moment after d, none for 0.
func deadlineAfter(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}
