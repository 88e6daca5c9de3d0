package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

// download is a body that is written in many pieces, each with its own deadline.
var download = bytes.Repeat([]byte("0123456789abcdef"), 100<<10)

// writeAll contains functions that send download in different ways.
var writeAll = map[string]func(w http.ResponseWriter) error{
	"Write": func(w http.ResponseWriter) error { _, err := w.Write(download); return err },
	"ReadFrom": func(w http.ResponseWriter) error {
		_, err := io.Copy(w, struct{ io.Reader }{bytes.NewReader(download)})
		return err
	},
	"ReadFrom a part": func(w http.ResponseWriter) error {
		_, err := io.CopyN(w, io.MultiReader(bytes.NewReader(download), neverRead{}), int64(len(download)))
		return err
	},
}

type neverRead struct{}

func (neverRead) Read([]byte) (int, error) { panic("read beyond the limit") }

// A client that reads slowly gets the complete response, even if it takes long.
func TestSlowReaderIsNotCut(t *testing.T) {
	for name, write := range writeAll {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, l := newServer(t, server.Options{})
				srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error { return write(w) })
				p, _ := serve(t, srv)
				conn := p.begin(t, get)
				began := time.Now()
				res, err := http.ReadResponse(bufio.NewReader(slowReader{conn, 64 << 10, 20 * time.Second}), nil)
				require.NoError(t, err)
				body, err := io.ReadAll(res.Body)
				require.NoError(t, err)
				require.True(t, bytes.Equal(download, body))
				require.Greater(t, time.Since(began), 5*time.Minute)
				require.Empty(t, l.at(""))
			})
		})
	}
}

// slowReader waits after each n bytes.
type slowReader struct {
	net.Conn
	n    int
	wait time.Duration
}

func (s slowReader) Read(p []byte) (int, error) {
	buf := make([]byte, s.n)
	n, err := io.ReadFull(s.Conn, buf[:min(len(p), s.n)])
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	<-time.After(s.wait * time.Duration(n) / time.Duration(s.n))
	return copy(p, buf[:n]), err
}

// If a client stops reading, the response ends after WriteTimeout, at any point of the response.
func TestStalledReaderIsCut(t *testing.T) {
	for name, write := range writeAll {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, _ := newServer(t, server.Options{WriteTimeout: 10 * time.Second})
				failed := make(chan error, 1)
				srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error {
					err := write(w)
					failed <- err
					return err
				})
				p, _ := serve(t, srv)
				conn := p.begin(t, get)
				_, err := io.CopyN(io.Discard, conn, int64(len(download))/2)
				require.NoError(t, err)
				began := time.Now()
				require.ErrorIs(t, <-failed, os.ErrDeadlineExceeded)
				require.LessOrEqual(t, time.Since(began), 10*time.Second)
			})
		})
	}
}

// TestEventsAreStreamedForLong checks that a handler may pause for minutes between writes, and for an hour at the
// end.
func TestEventsAreStreamedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error {
			for range 5 {
				<-time.After(3 * time.Minute)
				if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
					return err
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					return err
				}
			}
			<-time.After(time.Hour)
			return nil
		})
		_, c := serve(t, srv)
		res, err := request(t, c, "GET", "http://pipe/")
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("data: x\n\n", 5), res.body)
		require.Empty(t, l.at(""))
	})
}

// Over HTTP/2, a stream stays open while nothing is written, and a stalled stream is reset.
func TestDeadlinesOverHTTP2(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	srv, _ := newServer(t, server.Options{
		WriteTimeout: timeout,
		WriteProblem: func(w http.ResponseWriter, _ *http.Request, _ *server.Problem) { w.WriteHeader(http.StatusSeeOther) },
	})
	failed := make(chan error, 1)
	srv.Handle("GET /error", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.WriteError(w, r, errors.New("has no body")) // net/http keeps the header until the handler returns
		<-time.After(2 * timeout)
	}))
	srv.HandleFunc("GET /{how}", func(w http.ResponseWriter, req *server.Request) error {
		for range 2 {
			if err := writeText(w, "x"); err != nil {
				return err
			}
			if req.PathValue("how") == "events" {
				if err := http.NewResponseController(w).Flush(); err != nil {
					return err
				}
			}
			<-time.After(2 * timeout)
		}
		return nil
	})
	srv.HandleFunc("GET /large", func(w http.ResponseWriter, _ *server.Request) error {
		var err error
		for err == nil {
			_, err = w.Write(download)
		}
		failed <- err
		return http.ErrAbortHandler
	})
	url, c := h2Server(t, srv)
	for _, path := range []string{"/events", "/slow"} {
		res, err := request(t, c, "GET", url+path)
		require.NoError(t, err, path)
		require.Equal(t, 2, res.ProtoMajor)
		require.Equal(t, "xx", res.body, path)
	}
	res, err := request(t, c, "GET", url+"/error")
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, res.StatusCode)

	stalled, err := c.Get(url + "/large")
	require.NoError(t, err)
	defer stalled.Body.Close()
	require.Error(t, <-failed)
}

// An upload may take as long as its route's ReadTimeout allows, which is longer than the server's. Then the response
// is sent.
func TestUploadUnderRouteReadTimeout(t *testing.T) {
	for name, pause := range map[string]time.Duration{"in time": 4 * time.Minute, "too slow": 6 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, _ := newServer(t, server.Options{Params: params.Options{Routes: map[string]params.Options{
					"POST /photos": {ReadTimeout: 5 * time.Minute},
				}}})
				srv.HandleFunc("POST /photos", func(w http.ResponseWriter, req *server.Request) error {
					text, err := req.Params().Form().String("a")
					if err != nil {
						return err
					}
					return writeText(w, text)
				})
				p, _ := serve(t, srv)
				conn := p.begin(t, "POST /photos HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 6\r\n\r\na=")
				began := time.Now()
				time.AfterFunc(pause, func() { _, _ = io.WriteString(conn, "slow") })
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				body, err := io.ReadAll(res.Body)
				require.NoError(t, err)
				if name == "in time" {
					require.Equal(t, "slow", string(body))
					return
				}
				require.Equal(t, http.StatusRequestTimeout, res.StatusCode)
				require.Equal(t, 5*time.Minute, time.Since(began))
				conn.Close()
				<-time.After(time.Minute)
			})
		})
	}
}

// Files and ranges of files are complete, although sendfile sends them in pieces.
func TestFilesAreSentInPieces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, download, 0o600))
	srv, _ := newServer(t, server.Options{})
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		http.ServeFile(w, req.Request, path)
		return nil
	})
	url, c := listenItself(t, srv)
	res, err := request(t, c, "GET", url)
	require.NoError(t, err)
	require.True(t, res.body == string(download))
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	require.NoError(t, err)
	req.Header.Set("Range", "bytes=10-300000")
	part, err := c.Do(req)
	require.NoError(t, err)
	defer part.Body.Close()
	body, err := io.ReadAll(part.Body)
	require.NoError(t, err)
	require.True(t, bytes.Equal(download[10:300001], body))
}
