package params

import (
	"io"
	"net/http"
	"time"
)

// keepForm bounds the form that is kept for Params when something else reads it.
const keepForm = 1 << 20

// Share gives r a body that later copies of r have in common: whether a form is read
// from r or from a copy, by ParseForm or by [Params], the other finds it too. Through w,
// the response's writer as the server made it, Options.ReadTimeout becomes a deadline of
// the connection; w may be nil. Share is to be called before anything reads the body. It
// leaves a request without body as it is. If the body can't be read, Read returns the error
// that a method of Params would: an [*Error] for the client's fault, and its cause in the chain.
func Share(r *http.Request, w http.ResponseWriter) {
	if hasBody(r) {
		share(r, w)
	}
}

func share(r *http.Request, w http.ResponseWriter) *sharedBody {
	b, ok := r.Body.(*sharedBody)
	if !ok {
		b = &sharedBody{ReadCloser: r.Body, header: r.Header, writer: w}
		r.Body = b
	}
	return b
}

// hasBody reports whether the request can have content at all.
func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// sharedBody is the body of a request and its copies. Like any body it is for one
// goroutine at a time.
type sharedBody struct {
	io.ReadCloser             // what the client sends
	header        http.Header // until the first Read, which looks at the type
	writer        http.ResponseWriter
	keep          bool   // a form that is not too large is kept as it is read
	kept          []byte //
	lost          bool   // something was read, by others, and not kept
	replays       bool   // kept is read again, and then err; if err is nil, the rest
	err           error
}

// Read reads on, or again what was read before.
func (b *sharedBody) Read(p []byte) (int, error) {
	switch {
	case b.replays && (len(b.kept) > 0 || len(p) == 0):
		n := copy(p, b.kept)
		b.kept = b.kept[n:]
		return n, nil
	case b.err != nil:
		return 0, b.err
	case b.replays:
		return b.receive(p)
	}
	if b.header != nil {
		b.keep, b.header = contentOf(b.header).kind == formKind, nil
	}
	n, err := b.receive(p)
	if err == io.EOF {
		b.err = err
	}
	if b.keep = b.keep && len(b.kept)+n <= keepForm; b.keep {
		b.kept = append(b.kept, p[:n]...)
	} else {
		b.lost = b.lost || n > 0 || len(b.kept) > 0
		b.kept = nil
	}
	return n, err
}

// receive reads what the client sends. Its errors are those of this package.
func (b *sharedBody) receive(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = readError(err)
	}
	return n, err
}

// rewind makes what others have read be read once more. It returns an error if that is
// lost.
func (b *sharedBody) rewind() error {
	if b.lost {
		return ErrBodyTaken
	}
	b.replays = true
	return nil
}

// detach returns the body to be read as a stream, and leaves nothing to others.
func (b *sharedBody) detach() (*sharedBody, error) {
	if err := b.rewind(); err != nil {
		return nil, err
	}
	stream := *b
	b.setReplay(nil, ErrBodyTaken)
	return &stream, nil
}

// setReplay makes data be read again, and then err; if err is nil, the rest of the body.
func (b *sharedBody) setReplay(data []byte, err error) { b.replays, b.kept, b.err = true, data, err }

// setDeadline sets the connection's read deadline, if it can be set. net/http removes it
// when the body has ended.
func (b *sharedBody) setDeadline(t time.Time) {
	if b.writer != nil {
		_ = http.NewResponseController(b.writer).SetReadDeadline(t)
	}
}
