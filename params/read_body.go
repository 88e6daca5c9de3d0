package params

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

// A limited is a reader that returns at most limit bytes. If its source has more, Read returns the error
// over(limit). After an error, Read returns the same error again.
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

// A bodyReader reads a request's body as the client sends it. It counts the bytes and checks the time.
type bodyReader struct {
	limited
	ctx   context.Context
	until time.Time // the zero time means that there is no limit
}

// errSlow is the cause of an error about a body that came too slowly.
var errSlow = fmt.Errorf("params: timeout while reading the body: %w", os.ErrDeadlineExceeded)

// newBodyReader returns a reader of body whose time starts now.
func newBodyReader(ctx context.Context, body *sharedBody, o *Options, limit int64) *bodyReader {
	b := &bodyReader{limited: newLimited(body, limit, bodyTooLargeError), ctx: ctx}
	if o.ReadTimeout <= 0 {
		return b
	}
	b.until = time.Now().Add(o.ReadTimeout)
	s, _ := ctx.Value(http.ServerContextKey).(*http.Server)
	if o.extends || s == nil || s.ReadTimeout <= 0 || s.ReadTimeout > o.ReadTimeout {
		body.setDeadline(b.until)
	}
	return b
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if b.err == nil && b.ctx.Err() != nil {
		b.err = fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(b.ctx))
	}
	n, err := b.limited.Read(p)
	if err == nil && !b.until.IsZero() && time.Now().After(b.until) {
		err = readError(errSlow)
	}
	b.err = err
	return n, err
}

// readBody reads and inflates the request's body. Afterwards, the next reader of the request's Body reads what the
// client has sent, and the same error if there was one. A body whose declared length is too large is not read.
func readBody(ctx context.Context, r *http.Request, coding string, o *Options) ([]byte, error) {
	switch {
	case !hasBody(r):
		return nil, nil
	case r.ContentLength > o.MaxBody:
		return nil, bodyTooLargeError(o.MaxBody)
	}
	body := share(r, nil)
	if err := body.rewind(); err != nil {
		return nil, err
	}
	b := newBodyReader(ctx, body, o, o.MaxBody)
	var sent *bytes.Buffer
	if coding != "" {
		sent = new(bytes.Buffer)
		b.from = io.TeeReader(body, sent)
	}
	data, err := readAll(b.inflatedReader(coding), r.ContentLength)
	if sent == nil {
		body.setReplay(data, b.err)
	} else {
		body.setReplay(sent.Bytes(), b.err)
	}
	switch {
	case b.err == io.EOF && b.limit-b.left < r.ContentLength:
		return nil, ErrBodyTaken
	case err != nil:
		return nil, err
	}
	return data, nil
}

// readAll is [io.ReadAll] with a buffer for the size that the client declares. A size above 32 KiB is not trusted, because
// the client may send less. Readers share the result. It has no spare capacity, so append copies it.
func readAll(from io.Reader, declared int64) ([]byte, error) {
	size := int64(512)
	if declared > 0 {
		size = min(declared, 32<<10) + 1 // one more, so that the end is found without a larger buffer
	}
	data := make([]byte, 0, size)
	for {
		n, err := from.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return slices.Clip(data), nil
		} else if err != nil {
			return data, err
		}
		if len(data) == cap(data) { // the client has sent so much that the buffer may be twice as large
			data = slices.Grow(data, len(data))
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
	detail := "could not be received"
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		detail = "ended before it was complete"
	case errors.Is(err, os.ErrDeadlineExceeded):
		detail = "was not received in time"
	}
	own = newError(ErrInterrupted, SourceBody, "", detail)
	own.cause = err
	return own
}

// bodyTooLargeError returns an error that other readers of the body can match like that of [http.MaxBytesReader].
func bodyTooLargeError(limit int64) *Error {
	e := newError(ErrTooLarge, SourceBody, "", fmt.Sprintf("is larger than %d bytes", limit))
	e.cause = &http.MaxBytesError{Limit: limit}
	return e
}
