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
	limited // from is nil until the first Read
	body    *bodyReader
	source  *bufio.Reader // reads body; the decoder does not read ahead, because this is an io.ByteReader
	coding  string
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
	if i.from == nil {
		i.from, err = inflaters[i.coding](i.source)
	}
	if err == nil {
		n, err = i.limited.Read(p)
	}
	if err == io.EOF {
		err = i.endError()
	}
	if err != nil && err != io.EOF {
		err = i.bodyError(err)
	}
	i.err = err
	return n, err
}

// endError returns io.EOF if the body ends after its inflated content.
func (i *inflated) endError() error {
	_, err := i.source.ReadByte()
	if err == nil {
		err = malformedError(SourceBody, "", "has more after its "+i.coding+" content")
	}
	return err
}

// bodyError returns the error of the body if it has one, because that is why the decoder failed.
func (i *inflated) bodyError(err error) error {
	var own *Error
	detail := "is not valid "
	switch {
	case i.body.err != nil && i.body.err != io.EOF:
		return i.body.err
	case errors.As(err, &own):
		return own
	case i.body.left == i.body.limit: // an empty body is empty in every coding
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		detail = "ends too early for "
	}
	own = malformedError(SourceBody, "", detail+i.coding)
	own.cause = err
	return own
}
