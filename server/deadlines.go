package server

import (
	"io"
	"net/http"
	"time"
)

// piece is the number of bytes that are written before the deadline is checked again. At the start of a piece, at
// least half of Options.WriteTimeout is left. See [boundUnsent] for how much the client has to read in this time.
const piece = 64 << 10

// writeDeadline gives each piece of a response its own deadline. The zero value does not change deadlines.
type writeDeadline struct {
	timeout time.Duration
	until   time.Time // the current deadline; zero means none
	// perStream is set for HTTP/2. There is no deadline between writes then, because it would reset the stream even
	// if no write is waiting.
	perStream bool
}

// start replaces the deadline that net/http has set for the whole response.
func (d *writeDeadline) start(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	if timeout <= 0 {
		return
	}
	d.timeout, d.perStream = timeout, r.ProtoMajor >= 2
	if d.perStream {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		return
	}
	d.until = time.Now().Add(timeout)
}

// extend is called before a write. It moves the deadline only if less than half of the timeout is left, so that a
// response which is written at once needs no system call.
func (d *writeDeadline) extend(w http.ResponseWriter) {
	if d.timeout <= 0 {
		return
	}
	now := time.Now()
	if d.until.Sub(now) < d.timeout/2 {
		d.until = now.Add(d.timeout)
		_ = http.NewResponseController(w).SetWriteDeadline(d.until)
	}
}

// suspend is called after a write. Over HTTP/2, it removes the deadline.
func (d *writeDeadline) suspend(w http.ResponseWriter) {
	if d.timeout > 0 && d.perStream {
		d.until = time.Time{}
		_ = http.NewResponseController(w).SetWriteDeadline(d.until)
	}
}

// write writes p to w in pieces.
func (d *writeDeadline) write(w http.ResponseWriter, p []byte) (n int, err error) {
	defer d.suspend(w)
	for {
		d.extend(w)
		part := p[n:]
		if d.timeout > 0 && len(part) > piece {
			part = part[:piece]
		}
		m, err := w.Write(part)
		if n += m; err != nil || n == len(p) || m < len(part) {
			return n, err
		}
	}
}

// readFrom calls to.ReadFrom, a method of w, for each piece of src.
func (d *writeDeadline) readFrom(w http.ResponseWriter, to io.ReaderFrom, src io.Reader) (n int64, err error) {
	if d.timeout <= 0 {
		return to.ReadFrom(src)
	}
	defer d.suspend(w)
	whole, _ := src.(*io.LimitedReader)
	if whole == nil {
		whole = &io.LimitedReader{R: src, N: 1<<63 - 1}
	}
	for whole.N > 0 {
		d.extend(w)
		part := &io.LimitedReader{R: whole.R, N: min(whole.N, piece)} // sendfile accepts one LimitedReader, but not two
		m, err := to.ReadFrom(part)
		n += m
		whole.N -= m
		if err != nil || part.N > 0 {
			return n, err
		}
	}
	return n, nil
}
