package params

import (
	"io"
	"net/http"
	"time"
)

// maxKeptForm is the size of the largest form that is kept for Params when something else reads it.
const maxKeptForm = 1 << 20

// Share gives r a body that later copies of r have in common. If a form is read from r or from a copy, by ParseForm
// or by [Params], the other finds it too. Share must be called before anything reads the body: if a form was parsed
// before, Params returns [ErrBodyTaken]. Share leaves a request without a body as it is. If w is not nil, it is the
// response's writer as the server made it, and Options.ReadTimeout becomes a read deadline of its connection. If the
// body can't be read, Read returns the error that a method of Params would return.
func Share(r *http.Request, w http.ResponseWriter) {
	if hasBody(r) {
		share(r, w)
	}
}

func share(r *http.Request, w http.ResponseWriter) *sharedBody {
	b, ok := r.Body.(*sharedBody)
	if !ok {
		isForm := contentOf(r.Header).kind == formKind
		b = &sharedBody{ReadCloser: r.Body, keep: isForm, lost: isForm && formWasParsed(r), writer: w}
		r.Body = b
	}
	return b
}

// hasBody reports whether the request can have content at all.
func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// sharedBody is the body of a request and its copies. It is not safe for concurrent use.
type sharedBody struct {
	io.ReadCloser // what the client sends
	writer        http.ResponseWriter
	keep          bool // the body is a form, so the bytes that others read are kept
	kept          []byte
	lost          bool // others have read bytes, which were not kept
	replays       bool // Read returns kept, followed by err or by the rest of the body
	err           error
}

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
	n, err := b.receive(p)
	if err == io.EOF {
		b.err = err
	}
	if b.keep = b.keep && len(b.kept)+n <= maxKeptForm; b.keep {
		b.kept = append(b.kept, p[:n]...)
	} else {
		b.lost = b.lost || n > 0 || len(b.kept) > 0
		b.kept = nil
	}
	return n, err
}

// receive reads from the client. It turns an error into an error of this package.
func (b *sharedBody) receive(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = readError(err)
	}
	return n, err
}

// rewind makes Read return the bytes again that others have read. It returns an error if they were not kept.
func (b *sharedBody) rewind() error {
	if b.lost {
		return ErrBodyTaken
	}
	b.replays = true
	return nil
}

// detach returns a reader of the whole body. After that, b itself only returns [ErrBodyTaken].
func (b *sharedBody) detach() (*sharedBody, error) {
	if err := b.rewind(); err != nil {
		return nil, err
	}
	stream := *b
	b.setReplay(nil, ErrBodyTaken)
	return &stream, nil
}

// setReplay makes Read return data, and then err. If err is nil, the rest of the body follows the data.
func (b *sharedBody) setReplay(data []byte, err error) { b.replays, b.kept, b.err = true, data, err }

// setDeadline sets the connection's read deadline if possible. net/http removes it when the body has ended.
func (b *sharedBody) setDeadline(t time.Time) {
	if b.writer != nil {
		_ = http.NewResponseController(b.writer).SetReadDeadline(t)
	}
}
