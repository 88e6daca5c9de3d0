package params

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
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
	case "deflate": // which is zlib's format, RFC 9110 says
		return zlib.NewReader
	}
	return nil
}

// inflated is what a body is after inflating, up to a limit.
type inflated struct {
	body   *bodyReader
	source *bufio.Reader // the decoders read no further than they need: it is an io.ByteReader
	coding string
	open   inflater
	from   io.ReadCloser // nil before the first Read
	limit  int64
	n      int64
	err    error
}

// content returns what w reads, inflated if that is needed.
func (w *bodyReader) content(coding string, o *Options, limit int64) io.Reader {
	if coding == "" {
		return w
	}
	return &inflated{body: w, source: bufio.NewReader(w), coding: coding, open: o.inflaterOf(coding), limit: limit}
}

func (i *inflated) Read(p []byte) (n int, err error) {
	if i.err != nil {
		return 0, i.err
	}
	if i.from == nil {
		from, err := i.open(i.source)
		if err != nil {
			return 0, i.end(err)
		}
		i.from = from
	}
	if room := i.limit - i.n + 1; int64(len(p)) > room {
		p = p[:room]
	}
	n, err = i.from.Read(p)
	i.n += int64(n)
	switch {
	case i.n > i.limit:
		return n, i.end(&http.MaxBytesError{Limit: i.limit})
	case err != nil:
		return n, i.end(err)
	}
	return n, nil
}

// end closes the decoder and keeps why: the body's error if it has one, for that is
// what the decoder failed of.
func (i *inflated) end(err error) error {
	if i.from != nil {
		_ = i.from.Close() // it has nothing to flush
	}
	var tooLarge *http.MaxBytesError
	switch {
	case i.body.err != nil && i.body.err != io.EOF:
		i.err = i.body.err
	case errors.As(err, &tooLarge):
		i.err = err
	case err == io.EOF && i.from == nil && i.body.n == 0: // nothing is nothing in every coding
		i.err = io.EOF
	case err == io.EOF && i.from == nil, errors.Is(err, io.ErrUnexpectedEOF):
		i.err = i.malformed("ends too early for "+i.coding, err)
	case err != io.EOF:
		i.err = i.malformed("is not valid "+i.coding, err)
	default:
		i.err = i.rest()
	}
	return i.err
}

// rest is io.EOF if nothing comes after what was inflated.
func (i *inflated) rest() error {
	switch _, err := i.source.ReadByte(); {
	case err == nil:
		return i.malformed("has more after its "+i.coding+" content", nil)
	case i.body.err != nil:
		return i.body.err
	default:
		return err
	}
}

func (i *inflated) malformed(detail string, cause error) *Error {
	return &Error{Source: SourceBody, Reason: ErrMalformed, Detail: detail, cause: cause}
}
