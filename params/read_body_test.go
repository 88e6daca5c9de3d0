package params

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

// streamOf returns a POST request with a form whose length is not declared.
func streamOf(body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.ContentLength = -1
	r.Header.Set("Content-Type", formType)
	return r
}

func TestBodyLimit(t *testing.T) {
	for size, fits := range map[int]bool{99: true, 100: true, 101: false, 5000: false} {
		form := "a=" + strings.Repeat("x", size-2)
		for _, r := range []*http.Request{postForm("/", form), streamOf(strings.NewReader(form)), streamOf(iotest.OneByteReader(strings.NewReader(form)))} {
			p := paramsOf(t, r, Options{MaxBody: 100})
			a, err := p.String("a")
			if fits {
				require.NoError(t, err)
				require.Len(t, a, size-2)
				continue
			}
			require.Equal(t, 413, statusOf(t, requireReason(t, err, ErrTooLarge, "the request body is larger than 100 bytes")))
			require.ErrorIs(t, failure(p.Body()), ErrTooLarge)
			if r.ContentLength < 0 {
				var tooLarge *http.MaxBytesError
				require.ErrorAs(t, r.ParseForm(), &tooLarge, "no half of a form")
			}
		}
	}
}

func TestDeclaredLengthIsRefusedUnread(t *testing.T) {
	r := postForm("/", strings.Repeat("x", 200))
	body := watch(r)
	require.ErrorIs(t, failure(paramsOf(t, r, Options{MaxBody: 100}).String("a")), ErrTooLarge)
	require.Zero(t, body.reads)
	require.Len(t, value(io.ReadAll(r.Body)), 200, "the caller may still stream it")
}

func TestNoMoreIsReadThanTheLimit(t *testing.T) {
	endless := iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 10_000)))
	counted := &spy{Reader: endless}
	require.ErrorIs(t, failure(paramsOf(t, streamOf(counted), Options{MaxBody: 100}).Body()), ErrTooLarge)
	require.Equal(t, 101, counted.reads)
}

func TestLimitOfAnotherReader(t *testing.T) {
	r := streamOf(strings.NewReader(strings.Repeat("x", 100)))
	r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, 10)
	_, err := paramsOf(t, r, Options{}).Body()
	requireReason(t, err, ErrTooLarge, "larger than 10 bytes")
	var theirs *http.MaxBytesError
	require.ErrorAs(t, err, &theirs)
}

func TestInterruptedBody(t *testing.T) {
	for _, c := range []struct {
		cause  error
		status int
		text   string
	}{
		{io.ErrUnexpectedEOF, 400, "the request body ended before it was complete"},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, 400, "could not be received"},
		{fmt.Errorf("read: %w", os.ErrDeadlineExceeded), 408, "was not received in time"},
	} {
		r := streamOf(io.MultiReader(strings.NewReader("a=1"), iotest.ErrReader(c.cause)))
		p := paramsOf(t, r, Options{})
		_, err := p.StringOr("a", "def")
		e := requireReason(t, err, ErrInterrupted, c.text)
		require.ErrorIs(t, err, c.cause)
		status, _ := e.Problem()
		require.Equal(t, c.status, status)

		data, err := io.ReadAll(r.Body)
		require.ErrorIs(t, err, c.cause, "the next reader learns of it too")
		require.Equal(t, "a=1", string(data))
		require.ErrorIs(t, r.ParseForm(), c.cause)
	}
}

func TestTakenBody(t *testing.T) {
	for name, take := range map[string]func(*http.Request){
		"all":  func(r *http.Request) { _, _ = io.ReadAll(r.Body) },
		"part": func(r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, 1) },
		"shut": func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(http.ErrBodyReadAfterClose)) },
	} {
		r := postForm("/", "a=1")
		take(r)
		_, err := paramsOf(t, r, Options{}).String("a")
		require.ErrorIs(t, err, ErrBodyTaken, name)
		var e *Error
		require.False(t, errors.As(err, &e), "not a mistake of the client's")
	}
}

func TestBodyCanBeReadAgain(t *testing.T) {
	r := post("/", jsonType, "hello")
	p := paramsOf(t, r, Options{})
	require.ErrorIs(t, failure(p.String("a")), ErrMalformed)
	for range 2 {
		require.Equal(t, "hello", string(value(p.Body())))
	}
	require.Equal(t, "hello", string(value(io.ReadAll(r.Body))))
	require.Equal(t, "hello", string(value(p.Body())), "also after another reader")
}

func TestNoBody(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		r := postForm("/?q=1", "")
		r.Body = body
		p := paramsOf(t, r, Options{})
		require.Empty(t, value(p.Body()))
		require.Equal(t, 1, value(p.Int("q")))
		_, _, resolved := bodyKey.Peek(p.ctx)
		require.False(t, resolved, "there was nothing to read")
	}
}

// TestParsedFormIsTaken parses forms before Share, or with a Body that is wrapped after Share. So Params can't have them.
func TestParsedFormIsTaken(t *testing.T) {
	urlencoded, multipart := streamOf(strings.NewReader("a=1")), form(t, "a", "1")
	reader, chunked := form(t, "a", "1"), form(t, "a", "1")
	chunked.ContentLength = -1
	require.NoError(t, urlencoded.ParseForm())
	late, override := urlencoded.WithContext(t.Context()), urlencoded.WithContext(t.Context())
	override.Method = http.MethodDelete
	wrapped := streamOf(strings.NewReader("a=1"))
	for _, r := range []*http.Request{late, override, wrapped} {
		Share(r, nil)
	}
	wrapped.Body = http.MaxBytesReader(nil, wrapped.Body, 100)
	require.NoError(t, wrapped.ParseForm())
	require.NoError(t, multipart.ParseMultipartForm(1))
	require.NoError(t, errors.Join(chunked.ParseMultipartForm(1), failure(reader.MultipartReader())))
	for _, r := range []*http.Request{urlencoded, late, override, wrapped, multipart, chunked, reader} {
		p := paramsOf(t, r, Options{})
		require.ErrorIs(t, failure(p.Content().String("a")), ErrBodyTaken)
		require.ErrorIs(t, failure(p.Form().StringOr("a", "")), ErrBodyTaken)
	}
}

func TestParseFormBeforeLeavesOtherBodies(t *testing.T) {
	r := postJSON(`{"a":"1"}`)
	require.NoError(t, r.ParseForm())
	require.Equal(t, "1", value(paramsOf(t, r, Options{}).String("a")))

	r = httptest.NewRequest(http.MethodDelete, "/", strings.NewReader("a=1"))
	r.Header.Set("Content-Type", formType)
	require.NoError(t, r.ParseForm())
	require.Equal(t, "1", value(paramsOf(t, r, Options{}).Form().String("a")))
}

func TestReadingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("no more")
	body := strings.NewReader("a=1&b=2&c=3")
	r := streamOf(readerFunc(func(p []byte) (int, error) {
		if body.Len() <= 7 {
			cancel(gone)
		}
		return body.Read(p[:min(len(p), 4)])
	}))
	_, err := readBody(ctx, r, "", testOptions())
	require.ErrorIs(t, err, ErrInterrupted)
	require.ErrorIs(t, err, gone)
	var e *Error
	require.False(t, errors.As(err, &e), "the server's doing, not the client's")
	require.Equal(t, 3, body.Len(), "it stopped reading")

	data, err := io.ReadAll(r.Body)
	require.ErrorIs(t, err, gone, "the next reader learns of it too")
	require.Equal(t, "a=1&b=2&", string(data))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// serve starts a server that answers each request with the status of handle's error.
func serve(t *testing.T, handle func(*Params) error) *httptest.Server {
	reg := reqctx.NewRegistry(reqctx.Options{})
	Provide(reg, Options{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := reqctx.New(r.Context(), reg)
		defer func() { _ = c.Finish() }()
		c.SetRequest(r)
		p, _ := From(c)
		err := handle(p)
		status := http.StatusOK
		var e *Error
		if errors.As(err, &e) {
			status, _ = e.Problem()
		} else if err != nil {
			status = http.StatusInternalServerError
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s
}

// exchange sends a request over a connection of its own and returns the status of the response.
func exchange(t *testing.T, s *httptest.Server, request string) int {
	conn := value(net.Dial("tcp", s.Listener.Addr().String()))
	defer func() { _ = conn.Close() }()
	require.NoError(t, failure(io.WriteString(conn, request)))
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	res := value(http.ReadResponse(bufio.NewReader(conn), nil))
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode
}

func TestOverAConnection(t *testing.T) {
	s := serve(t, func(p *Params) error { _, err := p.Int("a"); return err })
	head := "POST /?a=7 HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
	for request, want := range map[string]int{
		head + "Content-Length: 3\r\n\r\na=1":                            200,
		head + "Transfer-Encoding: chunked\r\n\r\n3\r\na=1\r\n0\r\n\r\n": 200,
		head + "\r\n":                                                                             200, // there is no body, so the value comes from the query
		head + "Content-Length: 9\r\n\r\na=1":                                                     400, // cut off
		head + "Transfer-Encoding: chunked\r\n\r\n3\r\na=":                                        400,
		head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n":                                         400,
		head + "Content-Length: 1048577\r\n\r\n":                                                  413,
		head + "Content-Length: 1048577\r\nExpect: 100-continue\r\n\r\n":                          413,
		head + "Content-Length: 1\r\n\r\na":                                                       400, // "a" has an empty value, which is not a number
		strings.Replace(head, "x-www-form-urlencoded", "xml", 1) + "Content-Length: 3\r\n\r\n<a>": 415,
	} {
		require.Equal(t, want, exchange(t, s, request), request)
	}
}
