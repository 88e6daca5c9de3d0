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
	// lingerTime is how long a client may continue to send its body after the response, before the proxy closes the
	// connection.
	lingerTime = 500 * time.Millisecond
	// skipTime is how long the proxy waits for the rest of a short body that it doesn't need. After the whole body,
	// the connection can be kept.
	skipTime  = 50 * time.Millisecond
	shortBody = 64 << 10
)

// requestBody is a request's body. A Read waits for the client for at most stall. requestBody keeps the error of
// Read, which is the client's fault and not the upstream's.
//
// The transport may call Read after the end of the request. Such a call must not change the connection's deadline.
type requestBody struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration
	http2   bool // over HTTP/2, a deadline ends the stream even if no Read is in progress
	sent    bool // the body is forwarded to an upstream

	reading sync.Mutex // held by Read

	waiting  atomic.Bool  // Read is waiting for the client
	lastRead atomic.Int64 // time of the latest return of Read, in Unix nanoseconds
	answered atomic.Bool  // the upstream has sent its header
	closed   atomic.Bool  // the transport has called Close

	mu        sync.Mutex
	over      bool  // the request has ended
	unwatched bool  // watchUpstream was stopped
	readAll   bool  // Read has returned io.EOF
	err       error // the error of Read, other than io.EOF
}

// Read reads from the client. At the end of the body, it removes the deadline, because net/http then reads from the
// connection to notice when the client leaves.
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
	case io.EOF: // a body never wraps it
		b.readAll = true
	default:
		b.err = err
	}
	return n, err
}

// Close makes later Reads fail. The transport calls it when it has a response. Close does not close the embedded
// body, because that would wait for a Read in progress. net/http closes that body after the handler.
func (b *requestBody) Close() error {
	b.closed.Store(true)
	return nil
}

// setDeadline sets the deadline, or removes it if d is 0. It returns false if the request has ended.
func (b *requestBody) setDeadline(d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return false
	}
	_ = b.control.SetReadDeadline(deadlineAfter(d))
	return true
}

// errUnread is the cause of the cancellation if the upstream doesn't read the request's body.
var errUnread = fmt.Errorf("the upstream doesn't read the request's body: %w", context.DeadlineExceeded)

// watchUpstream calls silent if, for the duration timeout, the upstream neither reads from the body nor responds. It
// ends at the end of the body, after which the transport has its own timeout. The caller must call stop at the end of
// the request.
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

// skipShort reads a body that is not forwarded, if it is short. It reports whether it has read the whole body, so
// that the connection can be kept. It does not read if the client waits for 100 Continue. If the deadline has passed,
// the connection can't be kept, because the next read of net/http would fail.
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

// finish marks the request as ended, and makes a Read in progress return. If the body has not ended, net/http then
// reads more of it, for at most lingerTime.
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

// errorStatus returns the response's status if the body could not be read, and 0 otherwise. If the request was
// cancelled, errorStatus waits for a Read in progress, because net/http cancels the request before the failing Read
// returns.
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

// deadlineAfter returns the time in d from now, or the zero time if d is 0.
func deadlineAfter(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}
