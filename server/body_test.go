package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

// newBodies returns a server and its logs. The handlers try to read a body that the client does not send.
func newBodies(t *testing.T) (*server.Server, *logs) {
	srv, l := newServer(t, server.Options{})
	read := func(w http.ResponseWriter, req *server.Request) error {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := io.Copy(io.Discard, req.Body)
		return err
	}
	srv.HandleFunc("POST /returned", read)
	srv.HandleFunc("POST /begun", func(w http.ResponseWriter, req *server.Request) error {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always is
		_ = http.NewResponseController(w).Flush()
		return read(w, req)
	})
	srv.HandleFunc("POST /ignored", func(w http.ResponseWriter, req *server.Request) error {
		_ = read(w, req)
		return errors.New("a fault of the program")
	})
	return srv, l
}

// TestErrorsAfterAStalledBody has handlers that wait in vain for a body, and then return different errors. Each
// error gets its usual response, although net/http cancels the request over HTTP/1. The body's own error is a fault
// of the client.
func TestErrorsAfterAStalledBody(t *testing.T) {
	for protocol, listen := range protocols {
		for path, want := range map[string]int{"/returned": 408, "/begun": 200, "/ignored": 500} {
			t.Run(protocol+path, func(t *testing.T) {
				bodies, l := newBodies(t)
				outer, _ := newServer(t, server.Options{})
				outer.Handle("/", bodies)
				url, c := listen(t, outer)
				body, end := io.Pipe()
				defer end.Close()
				res, err := c.Post(url+path, "text/plain", body)
				require.NoError(t, err)
				_, err = io.ReadAll(res.Body)
				require.NoError(t, res.Body.Close())
				require.Equal(t, path == "/begun", err != nil, "whether the response is cut off")
				require.Equal(t, want, res.StatusCode)
				if want != 500 {
					require.Empty(t, l.at("ERROR"))
					return
				}
				require.Equal(t, "a fault of the program", l.only(t)["error"])
			})
		}
	}
}

func TestErrorsOfABody(t *testing.T) {
	srv, l := newBodies(t)
	failed := make(chan error, 1)
	srv.HandleFunc("POST /", func(w http.ResponseWriter, req *server.Request) error {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
		_, err := io.Copy(io.Discard, req.Body)
		failed <- err
		return nil
	})
	url, _ := listen(t, srv)
	conn := begin(t, url, "POST /returned HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, res.StatusCode, "a malformed body is the client's fault")
	require.Empty(t, l.at("ERROR"))

	begin(t, url, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
	err = <-failed
	require.ErrorIs(t, err, params.ErrInterrupted)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// A client whose body is refused can read the response. The connection is closed in order and not reset, because a
// reset could arrive before the response.
func TestRefusedBodyEndsConnectionInOrder(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	srv.HandleFunc("POST /", func(_ http.ResponseWriter, req *server.Request) error {
		if _, err := io.ReadFull(req.Body, make([]byte, 10)); err != nil {
			return err
		}
		return &server.Problem{Status: http.StatusRequestEntityTooLarge}
	})
	plain := httptest.NewServer(srv)
	t.Cleanup(plain.Close)
	for name, head := range map[string]string{
		"expect": "POST / HTTP/1.1\r\nExpect: 100-continue\r\n",
		"close":  "POST / HTTP/1.1\r\nConnection: close\r\n",
		"1.0":    "POST / HTTP/1.0\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", plain.Listener.Addr().String())
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
			_, err = io.WriteString(conn, head+"Host: a\r\nContent-Length: 5000000\r\n\r\n"+strings.Repeat("x", 100_000))
			require.NoError(t, err)
			in := bufio.NewReader(conn)
			res, err := http.ReadResponse(in, nil)
			if err == nil && res.StatusCode == http.StatusContinue {
				res, err = http.ReadResponse(in, nil)
			}
			require.NoError(t, err)
			require.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
			_, err = io.ReadAll(res.Body)
			require.NoError(t, err)
			_, err = in.ReadByte()
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

// upload returns a request with a multipart form that has a text field and a file of size bytes.
func upload(tb testing.TB, size int) *http.Request {
	tb.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	require.NoError(tb, w.WriteField("title", "T"))
	part, err := w.CreateFormFile("file", "f.bin")
	require.NoError(tb, err)
	_, err = part.Write(bytes.Repeat([]byte("x"), size))
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	r := httptest.NewRequest("POST", "/upload", &b)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return r
}

func TestFilesAreGoneAfterTheResponse(t *testing.T) {
	for name, read := range map[string]func(t *testing.T, req *server.Request){
		"File": func(t *testing.T, req *server.Request) {
			f, err := req.Params().File("file")
			require.NoError(t, err)
			require.EqualValues(t, 200_000, f.Size)
		},
		"ParseMultipartForm": func(t *testing.T, req *server.Request) {
			require.NoError(t, req.ParseMultipartForm(1000))
			require.EqualValues(t, 200_000, req.MultipartForm.File["file"][0].Size)
			_, err := req.Params().File("file")
			require.ErrorIs(t, err, params.ErrBodyTaken)
		},
	} {
		for end, handler := range map[string]func(w http.ResponseWriter) error{
			"response": func(http.ResponseWriter) error { return nil },
			"error":    func(http.ResponseWriter) error { return errors.New("failed") },
			"panic":    func(http.ResponseWriter) error { panic("failed") },
			"abort":    func(http.ResponseWriter) error { panic(http.ErrAbortHandler) },
		} {
			t.Run(name+", "+end, func(t *testing.T) {
				dir := t.TempDir()
				t.Setenv("TMPDIR", dir)
				srv, l := newServer(t, server.Options{})
				srv.HandleFunc("POST /upload", func(w http.ResponseWriter, req *server.Request) error {
					read(t, req)
					open, known := openIn(t, dir)
					named, err := os.ReadDir(dir)
					require.NoError(t, err)
					require.True(t, open > 0 || len(named) > 0 || !known)
					return handler(w)
				})
				func() {
					defer func() { _ = recover() }() // an abort goes through
					send(srv, upload(t, 200_000))
				}()
				require.NoError(t, srv.Shutdown(t.Context()))
				left, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, left)
				open, _ := openIn(t, dir)
				require.Zero(t, open)
				for _, line := range l.at("ERROR") {
					require.NotContains(t, fmt.Sprint(line), "clean-up")
				}
			})
		}
	}
}

// openIn returns the number of this process's open files in dir, including deleted files. known is false if the
// system does not list open files.
func openIn(tb testing.TB, dir string) (n int, known bool) {
	tb.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	for _, fd := range list {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(target, dir) {
			n++
		}
	}
	return n, true
}

// get is a request.
const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// begin returns a connection on which the beginning of a request was sent.
func begin(tb testing.TB, url, request string) net.Conn {
	tb.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, request)
	require.NoError(tb, err)
	return conn
}

// The deadline for the body does not apply to the handler. Otherwise, the server would assume that the client has
// gone.
func TestDeadlineOfABodyEndsWithIt(t *testing.T) {
	t.Parallel()
	srv, _ := newServer(t, server.Options{Params: params.Options{ReadTimeout: 500 * time.Millisecond}})
	srv.HandleFunc("POST /", func(_ http.ResponseWriter, req *server.Request) error {
		if _, err := req.Params().Form().String("a"); err != nil {
			return err
		}
		select {
		case <-req.Context().Done():
			return context.Cause(req.Context())
		case <-time.After(700 * time.Millisecond):
			return nil
		}
	})
	url, _ := listen(t, srv)
	conn := begin(t, url, "")
	br := bufio.NewReader(conn)
	for range 2 { // the connection can be used again
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=1")
		require.NoError(t, err)
		res, err := http.ReadResponse(br, nil)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
}
