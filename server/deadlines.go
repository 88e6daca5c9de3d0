package server

import (
	"io"
	"net/http"
	"time"
)

// piece is how many bytes of a body go out under one deadline, of which at least half of
// Options.WriteTimeout is left then. See [boundUnsent] for what the client has to read meanwhile.
const piece = 64 << 10

// writeDeadline gives each piece of a response its own deadline. The zero value leaves the
// connection's deadlines alone.
type writeDeadline struct {
	timeout time.Duration
	until   time.Time // the deadline that is set; zero means none
	// perStream is set for HTTP/2, where a deadline that passes resets the stream even if no
	// write is waiting: there is none between writes.
	perStream bool
}

// start takes over the deadline that net/http has set for the whole response.
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

// extend is called before a write. It moves the deadline only if less than half of the timeout
// is left, so that a response which is written at once costs no system call.
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

// suspend is called after a write.
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

// readFrom has w, which is to, read src in pieces.
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
		part := &io.LimitedReader{R: whole.R, N: min(whole.N, piece)} // sendfile sees through one, not two
		m, err := to.ReadFrom(part)
		n += m
		whole.N -= m
		if err != nil || part.N > 0 {
			return n, err
		}
	}
	return n, nil
}
