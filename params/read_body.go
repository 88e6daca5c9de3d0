package params

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// firstBuffer bounds what is allocated on a client's word alone.
const firstBuffer = 64 << 10

// hasBody reports whether the request can have content at all.
func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// readBody reads the request's body, inflates it, and puts back what came, so that
// the next reader finds the same bytes, and after them the same error if there was
// one. A body that is refused for its declared length is not touched.
func readBody(ctx context.Context, r *http.Request, coding string, o *Options) ([]byte, error) {
	if !hasBody(r) {
		return nil, nil
	}
	if r.ContentLength > o.MaxBody {
		return nil, bodyTooLarge(o.MaxBody, nil)
	}
	body := r.Body
	shared, _ := body.(*sharedBody)
	if shared != nil && !shared.rewind() {
		return nil, ErrBodyTaken
	}
	w := newBodyReader(ctx, r, body, o, o.MaxBody)
	w.keep = coding != ""
	declared := r.ContentLength
	if w.keep {
		declared = -1
	}
	data, err := readAll(w.content(coding, o, o.MaxBody), declared, o.MaxBody)
	if !w.keep {
		w.kept = data
	}
	w.back = replayBody{data: w.kept, err: w.err, origin: body}
	if shared != nil {
		w.back.origin = shared.ReadCloser
		shared.again = &w.back
	} else {
		r.Body = &w.back
	}
	switch {
	case w.err == io.EOF && w.n < r.ContentLength:
		return nil, ErrBodyTaken
	case err != io.EOF:
		return nil, readError(err)
	}
	return data, nil
}

// readAll returns what it could read and the error that ended it, io.EOF if that
// was the body's end. It holds at most limit+1 bytes.
func readAll(body io.Reader, declared, limit int64) ([]byte, error) {
	size := int64(512)
	if declared > 0 {
		size = min(declared+1, firstBuffer) // one more, to see the end without growing
	}
	data := make([]byte, 0, min(size, limit+1))
	for {
		if len(data) == cap(data) {
			grown := make([]byte, len(data), min(2*int64(cap(data)), limit+1))
			copy(grown, data)
			data = grown
		}
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err != nil {
			return data, err
		}
	}
}

// readError says whose fault it is that a body could not be read.
func readError(err error) error {
	var tooLarge *http.MaxBytesError
	var told *Error
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &tooLarge):
		return bodyTooLarge(tooLarge.Limit, err)
	case errors.Is(err, ErrInterrupted), errors.Is(err, ErrBodyTaken):
		return err
	case errors.Is(err, http.ErrBodyReadAfterClose):
		return ErrBodyTaken
	}
	e := &Error{Source: SourceBody, Reason: ErrInterrupted, Detail: "could not be received", cause: err}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Detail = "ended before it was complete"
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Detail = "was not received in time"
	}
	return e
}

func bodyTooLarge(limit int64, cause error) *Error {
	return &Error{
		Source: SourceBody, Reason: ErrTooLarge, cause: cause,
		Detail: fmt.Sprintf("is larger than %d bytes", limit),
	}
}

// replayBody is a body that was read before.
type replayBody struct {
	data   []byte // what of it is still to be read again
	err    error  // what ended the first reading, nil if nothing did
	origin io.ReadCloser
}

// Read returns what the first reading did. One that was only interrupted, by its
// context or because it had enough, goes on from where that was.
func (b *replayBody) Read(p []byte) (int, error) {
	switch {
	case len(b.data) > 0 || len(p) == 0:
		n := copy(p, b.data)
		b.data = b.data[n:]
		return n, nil
	case b.err == nil, errors.Is(b.err, ErrInterrupted):
		return b.origin.Read(p)
	}
	return 0, b.err
}

// Close closes the original body.
func (b *replayBody) Close() error { return b.origin.Close() }
