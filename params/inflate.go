package params

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
)

// inflaters open the content codings that are supported.
var inflaters = map[string]func(io.Reader) (io.ReadCloser, error){
	"gzip":    openGzip,
	"x-gzip":  openGzip,
	"deflate": zlib.NewReader, // this is zlib's format (RFC 9110)
}

func openGzip(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

// inflated inflates a body up to its limit.
type inflated struct {
	limited
	body    *bodyReader
	source  *bufio.Reader // the decoders don't read ahead, because it is an io.ByteReader
	coding  string
	decoder io.ReadCloser // nil until the first Read
}

// inflatedReader returns a reader that inflates what b reads, with the same limit.
func (b *bodyReader) inflatedReader(coding string) io.Reader {
	if coding == "" {
		return b
	}
	return &inflated{limited: newLimited(nil, b.limit, bodyTooLargeError), body: b, source: bufio.NewReader(b), coding: coding}
}

func (i *inflated) Read(p []byte) (n int, err error) {
	if i.err != nil {
		return 0, i.err
	}
	if i.decoder == nil {
		if i.decoder, err = inflaters[i.coding](i.source); err != nil {
			i.err = i.bodyError(err)
			return 0, i.err
		}
		i.from = i.decoder
	}
	if n, err = i.limited.Read(p); err != nil {
		_ = i.decoder.Close()
		i.err = i.endError(err)
	}
	return n, i.err
}

// endError returns the error of a decoder that has ended. Nothing may follow its content.
func (i *inflated) endError(err error) error {
	if err != io.EOF {
		return i.bodyError(err)
	}
	if _, err = i.source.ReadByte(); err == nil {
		return i.malformedError("has more after its "+i.coding+" content", nil)
	}
	return err
}

// bodyError returns the error of the body if it has one, because that is why the decoder failed.
func (i *inflated) bodyError(err error) error {
	var own *Error
	switch {
	case i.body.err != nil && i.body.err != io.EOF:
		return i.body.err
	case errors.As(err, &own):
		return own
	case err == io.EOF && i.body.left == i.body.limit: // an empty body is empty in every coding
		return io.EOF
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return i.malformedError("ends too early for "+i.coding, err)
	}
	return i.malformedError("is not valid "+i.coding, err)
}

func (i *inflated) malformedError(detail string, cause error) *Error {
	e := malformedError(SourceBody, "", detail)
	e.cause = cause
	return e
}
