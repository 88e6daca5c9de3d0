package params

import "io"

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
