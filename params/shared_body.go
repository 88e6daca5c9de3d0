package params

import (
	"io"
	"net/http"
	"time"
)

// keepForm bounds the form that is kept for Params when something else reads it.
const keepForm = 1 << 20

// Share gives r a body that later copies of r have in common: whether a form is read
// from r or from a copy, by ParseForm or by Params, the other finds it too. Through w,
// the response's writer as the server made it, Options.ReadTimeout becomes a deadline of
// the connection; w may be nil. It is to be called before anything has read the body. A
// request without body is left as it is.
func Share(r *http.Request, w http.ResponseWriter) {
	if !hasBody(r) {
		return
	}
	if _, done := r.Body.(*sharedBody); !done {
		r.Body = &sharedBody{ReadCloser: r.Body, header: r.Header, writer: w}
	}
}

// sharedBody is the body of a request and its copies. Like any body it is for one
// goroutine at a time.
type sharedBody struct {
	io.ReadCloser             // what the client sends
	header        http.Header // until the first Read, which looks at the type
	writer        http.ResponseWriter
	again         *replayBody // what Params has read, to be read again
	keep          bool        // a form that is not too large is kept as it is read
	kept          []byte
	lost          bool // something was read, by others, and not kept
	ended         bool
}

// Read reads on, or again what Params has read.
func (b *sharedBody) Read(p []byte) (int, error) {
	switch {
	case b.again != nil:
		return b.again.Read(p)
	case b.ended:
		return 0, io.EOF
	}
	if b.header != nil {
		b.keep, b.header = kindOfHeader(b.header) == formKind, nil
	}
	n, err := b.ReadCloser.Read(p)
	b.ended = err == io.EOF
	if b.keep = b.keep && len(b.kept)+n <= keepForm; b.keep {
		b.kept = append(b.kept, p[:n]...)
	} else {
		b.lost = b.lost || n > 0 || len(b.kept) > 0
		b.kept = nil
	}
	return n, err
}

// rewind makes what others have read be read once more. It says false if that is lost.
func (b *sharedBody) rewind() bool {
	switch {
	case b.again != nil:
		return true
	case b.lost:
		return false
	case b.ended:
		b.again = &replayBody{data: b.kept, err: io.EOF, origin: b.ReadCloser}
	case len(b.kept) > 0: // the rest is still to come
		b.again = &replayBody{data: b.kept, err: ErrInterrupted, origin: b.ReadCloser}
	}
	b.header, b.keep, b.kept = nil, false, nil // Params keeps what it reads itself
	return true
}

// detach returns the body to be read as a stream, and leaves nothing to others. It
// returns nil if something was read before and is lost.
func (b *sharedBody) detach() io.Reader {
	if !b.rewind() {
		return nil
	}
	var source io.Reader = b.ReadCloser
	if b.again != nil {
		source = b.again
	}
	b.again = &replayBody{err: ErrBodyTaken, origin: b.ReadCloser}
	return source
}

// deadline sets when reads of the connection end, where that can be set.
func (b *sharedBody) deadline(t time.Time) {
	if b.writer != nil {
		_ = http.NewResponseController(b.writer).SetReadDeadline(t)
	}
}
