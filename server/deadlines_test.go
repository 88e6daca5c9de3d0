package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
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

	"github.com/lazyreq/lazyreq/internal/graceful"
	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

// download is larger than what goes out under one deadline.
var download = bytes.Repeat([]byte("0123456789abcdef"), 100<<10)

// writeAll has the header and body sent in one way or another.
var writeAll = map[string]func(w http.ResponseWriter) error{
	"Write": func(w http.ResponseWriter) error { _, err := w.Write(download); return err },
	"WriteString": func(w http.ResponseWriter) error {
		_, err := w.(io.StringWriter).WriteString(string(download))
		return err
	},
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

// A client that reads slowly gets all of a response, however long that takes.
func TestSlowReaderIsNotCut(t *testing.T) {
	for name, write := range writeAll {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, l := newServer(t, server.Options{})
				srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error { return write(w) })
				p, _ := serve(t, srv)
				conn, err := p.dial(t.Context(), "", "")
				require.NoError(t, err)
				defer conn.Close()
				_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				require.NoError(t, err)
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

// A client that has stopped reading ends the response after WriteTimeout, at whatever point.
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
				conn, err := p.dial(t.Context(), "", "")
				require.NoError(t, err)
				defer conn.Close()
				_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				require.NoError(t, err)
				_, err = io.CopyN(io.Discard, conn, int64(len(download))/2)
				require.NoError(t, err)
				began := time.Now()
				require.ErrorIs(t, <-failed, os.ErrDeadlineExceeded)
				require.LessOrEqual(t, time.Since(began), 10*time.Second)
			})
		})
	}
}

// Events can be far apart, and a handler can think for long before it writes.
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

// h2Server serves srv itself over HTTP/2.
func h2Server(t *testing.T, srv *server.Server) (url string, c *http.Client) {
	t.Helper()
	files := newPEMFiles(t, newPair(t, "127.0.0.1"))
	l, err := graceful.Listen("127.0.0.1:0") // as ListenAndServe does
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.ServeTLS(l, files.cert, files.key) }()
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return "https://" + l.Addr().String(), &http.Client{Transport: tr}
}

// Over HTTP/2, a stream lives on while nothing is written, and a stalled one is reset.
func TestDeadlinesOverHTTP2(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	srv, _ := newServer(t, server.Options{WriteTimeout: timeout})
	failed := make(chan error, 1)
	srv.HandleFunc("GET /events", func(w http.ResponseWriter, _ *server.Request) error {
		for range 2 {
			if _, err := io.WriteString(w, "x"); err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
			<-time.After(2 * timeout)
		}
		return nil
	})
	srv.HandleFunc("GET /slow", func(w http.ResponseWriter, _ *server.Request) error {
		for range 2 {
			if _, err := io.WriteString(w, "x"); err != nil {
				return err
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

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", url+"/large", nil)
	require.NoError(t, err)
	stalled, err := c.Do(req)
	require.NoError(t, err)
	defer stalled.Body.Close()
	require.Error(t, <-failed)
}

// A handler's own deadline is left alone.
func TestHandlersOwnWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		took := make(chan time.Duration, 1)
		srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error {
			began := time.Now()
			require.NoError(t, http.NewResponseController(w).SetWriteDeadline(began.Add(5*time.Second)))
			_, err := w.Write(download)
			took <- time.Since(began)
			return err
		})
		p, _ := serve(t, srv)
		conn, err := p.dial(t.Context(), "", "")
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, <-took)
	})
}

// An upload has the time that its route gives it, on a server with default timeouts, and its
// response comes after that.
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
					_, err = io.WriteString(w, text)
					return err
				})
				p, _ := serve(t, srv)
				conn, err := p.dial(t.Context(), "", "")
				require.NoError(t, err)
				defer conn.Close()
				_, err = io.WriteString(conn, "POST /photos HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 6\r\n\r\na=")
				require.NoError(t, err)
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

// sendfile reads a file, or a part of one, in pieces.
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

// New refuses timeouts that contradict each other.
func TestTimeoutsThatContradictEachOther(t *testing.T) {
	for field, o := range map[string]server.Options{
		"Options.ReadHeaderTimeout":  {ReadHeaderTimeout: 2 * time.Minute, ReadTimeout: time.Minute},
		"Options.Params.ReadTimeout": {ReadTimeout: time.Minute, Params: params.Options{ReadTimeout: 2 * time.Minute}},
		"Options.WriteTimeout":       {WriteTimeout: 1 << 62},
		"Options.MaxHeaderBytes":     {MaxHeaderBytes: -1},
	} {
		_, err := server.New(o)
		var wrong *server.OptionError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, field, wrong.Field)
		require.Equal(t, "server", wrong.Package)
	}
	for _, o := range []server.Options{
		{ReadTimeout: time.Second},
		{Params: params.Options{ReadTimeout: 5 * time.Minute}},
		{ReadTimeout: -1, ReadHeaderTimeout: time.Hour},
	} {
		_, err := server.New(o)
		require.NoError(t, err)
	}
}
