package params

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// firstBuffer bounds what is allocated for a length that a client only declares.
const firstBuffer = 64 << 10

// A bodyReader is a request's body as the client sends it: counted, timed, and kept if
// it is to be read again. Its errors are those of this package.
type bodyReader struct {
	limited
	ctx     context.Context
	until   time.Time // zero: no limit of time
	keep    bool
	kept    []byte
	stopped bool // by ctx: the next reader can go on
}

// errSlow is the cause of an error about a body that came too slowly.
var errSlow = fmt.Errorf("params: timeout while reading the body: %w", os.ErrDeadlineExceeded)

// newBodyReader returns a bodyReader of a body, whose time begins now.
func newBodyReader(ctx context.Context, body *sharedBody, o *Options, limit int64) *bodyReader {
	w := &bodyReader{limited: newLimited(body, limit, bodyTooLargeError), ctx: ctx}
	if o.ReadTimeout <= 0 {
		return w
	}
	w.until = time.Now().Add(o.ReadTimeout)
	s, _ := ctx.Value(http.ServerContextKey).(*http.Server)
	if o.extends || s == nil || s.ReadTimeout <= 0 || s.ReadTimeout > o.ReadTimeout {
		body.setDeadline(w.until)
	}
	return w
}

func (w *bodyReader) Read(p []byte) (int, error) {
	if w.err == nil && w.ctx.Err() != nil {
		w.stopped = true
		w.err = fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(w.ctx))
	}
	n, err := w.limited.Read(p)
	if w.keep {
		w.kept = append(w.kept, p[:n]...)
	}
	if err == nil && !w.until.IsZero() && time.Now().After(w.until) {
		err = errSlow
	}
	if err != nil && err != io.EOF && !w.stopped {
		err = readError(err)
	}
	w.err = err
	return n, err
}

// readBody reads the request's body, inflates it, and makes what came be read again, so
// that the next reader finds the same bytes, and after them the same error if there was
// one. A body that is refused for its declared length is not touched.
func readBody(ctx context.Context, r *http.Request, coding string, o *Options) ([]byte, error) {
	if !hasBody(r) {
		return nil, nil
	}
	if r.ContentLength > o.MaxBody {
		return nil, bodyTooLargeError(o.MaxBody)
	}
	body := share(r, nil)
	if err := body.rewind(); err != nil {
		return nil, err
	}
	w := newBodyReader(ctx, body, o, o.MaxBody)
	declared := r.ContentLength
	if w.keep = coding != ""; w.keep {
		declared = -1
	}
	data, err := readAll(w.inflatedReader(coding, o, o.MaxBody), declared, o.MaxBody)
	if !w.keep {
		w.kept = data
	}
	if end := w.err; w.stopped {
		body.setReplay(w.kept, nil)
	} else {
		body.setReplay(w.kept, end)
	}
	switch {
	case w.err == io.EOF && w.limit-w.left < r.ContentLength:
		return nil, ErrBodyTaken
	case err != io.EOF:
		return nil, err
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

// readError returns the package's error about a body that could not be read.
func readError(err error) error {
	var tooLarge *http.MaxBytesError
	var own *Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &tooLarge):
		own = bodyTooLargeError(tooLarge.Limit)
		own.cause = err
		return own
	case errors.Is(err, ErrBodyTaken), errors.Is(err, http.ErrBodyReadAfterClose):
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

// bodyTooLargeError is also the error of [http.MaxBytesReader], for other readers.
func bodyTooLargeError(limit int64) *Error {
	return &Error{
		Source: SourceBody, Reason: ErrTooLarge, cause: &http.MaxBytesError{Limit: limit},
		Detail: fmt.Sprintf("is larger than %d bytes", limit),
	}
}

// A limited reads no more than a limit of what it is from. One more byte is the error that
// over makes of the limit. It keeps the error that ended it.
type limited struct {
	from  io.Reader
	limit int64
	left  int64
	over  func(limit int64) *Error
	err   error
}

func newLimited(from io.Reader, limit int64, over func(int64) *Error) limited {
	return limited{from: from, limit: limit, left: limit, over: over}
}

func (l *limited) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	if int64(len(p))-1 > l.left {
		p = p[:l.left+1]
	}
	n, err := l.from.Read(p)
	if l.left -= int64(n); l.left < 0 {
		err = l.over(l.limit)
	}
	l.err = err
	return n, err
}
