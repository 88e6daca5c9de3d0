package params

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
)

// An inflater opens a content coding.
type inflater = func(io.Reader) (io.ReadCloser, error)

// inflaterOf returns what opens a coding in lower case, nil if there is none.
func (o *Options) inflaterOf(coding string) inflater {
	if d := o.Decoders[coding]; d != nil {
		return d
	}
	switch coding {
	case "gzip", "x-gzip":
		return func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }
	case "deflate": // zlib's format (RFC 9110)
		return zlib.NewReader
	}
	return nil
}

// inflated is a body after inflating, up to a limit.
type inflated struct {
	limited
	body   *bodyReader
	source *bufio.Reader // the decoders read no further than they need: it is an io.ByteReader
	coding string
	open   inflater
}

// inflatedReader returns what w reads, inflated if that is needed.
func (w *bodyReader) inflatedReader(coding string, o *Options, limit int64) io.Reader {
	if coding == "" {
		return w
	}
	return &inflated{
		limited: newLimited(nil, limit, bodyTooLargeError),
		body:    w, source: bufio.NewReader(w), coding: coding, open: o.inflaterOf(coding),
	}
}

func (i *inflated) Read(p []byte) (int, error) {
	if i.from == nil && i.err == nil {
		decoder, err := i.open(i.source)
		if err != nil {
			i.err = i.bodyError(err)
			return 0, i.err
		}
		i.from = decoder
	}
	n, err := i.limited.Read(p)
	if decoder, open := i.from.(io.Closer); err != nil && open {
		_ = decoder.Close() // it has nothing to flush
		i.from = nil
		i.err = i.endError(err)
	}
	return n, i.err
}

// endError returns the error of a decoder that has ended. After it nothing may come.
func (i *inflated) endError(err error) error {
	if err != io.EOF {
		return i.bodyError(err)
	}
	if _, err = i.source.ReadByte(); err == nil {
		return i.malformedError("has more after its "+i.coding+" content", nil)
	}
	return err // of the body
}

// bodyError returns the body's error if it has one, for that is why the decoder failed.
func (i *inflated) bodyError(err error) error {
	var own *Error
	switch {
	case i.body.err != nil && i.body.err != io.EOF:
		return i.body.err
	case errors.As(err, &own):
		return own
	case err == io.EOF && i.body.left == i.body.limit: // nothing is nothing in every coding
		return io.EOF
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return i.malformedError("ends too early for "+i.coding, err)
	}
	return i.malformedError("is not valid "+i.coding, err)
}

func (i *inflated) malformedError(detail string, cause error) *Error {
	return &Error{Source: SourceBody, Reason: ErrMalformed, Detail: detail, cause: cause}
}
