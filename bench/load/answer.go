package load

import (
	"bytes"
	"fmt"
	"strconv"
)

// Answer is an answer that is right.
type Answer struct {
	// Status is a number such as "200".
	Status string
	// Body is the whole body; nil is any, of the length in the header.
	Body []byte
}

var (
	protocol      = []byte("HTTP/1.1 ")
	contentLength = []byte("\r\nContent-Length: ")
	endOfHeader   = []byte("\r\n\r\n")
)

// Check is for [Conn].
func (a *Answer) Check(got []byte) (whole bool, err error) {
	if !a.isPrefix(got) {
		line, _, _ := bytes.Cut(got, endOfHeader[:2])
		return false, fmt.Errorf("%w: %s, want %s", ErrWrong, line, a.Status)
	}
	header, body, ok := bytes.Cut(got, endOfHeader)
	if !ok {
		return false, nil
	}
	_, value, _ := bytes.Cut(header, contentLength)
	value, _, _ = bytes.Cut(value, endOfHeader[:2])
	length, err := strconv.Atoi(string(value))
	if err != nil || a.Body != nil && length != len(a.Body) {
		return false, fmt.Errorf("%w: a body of %q bytes, want %d", ErrWrong, value, len(a.Body))
	}
	if len(body) < length {
		return false, nil
	}
	if len(body) > length || a.Body != nil && !bytes.Equal(body, a.Body) {
		return false, fmt.Errorf("%w: %q, want %q", ErrWrong, body, a.Body)
	}
	return true, nil
}

// isPrefix reports whether got begins an answer with the status, as far as got goes.
func (a *Answer) isPrefix(got []byte) bool {
	n := min(len(got), len(protocol))
	status := got[n:min(len(got), n+len(a.Status))]
	return bytes.Equal(got[:n], protocol[:n]) && string(status) == a.Status[:len(status)]
}
