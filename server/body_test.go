package server_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

// newBodies returns a server whose handlers read a body that does not come, and its logs.
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

// A handler's error after a body that was not received in time is what it is without one, though
// net/http cancels the request over HTTP/1. If it is the body's own error, it is the client's fault.
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

func TestMalformedBodyIsTheClientsFault(t *testing.T) {
	srv, l := newBodies(t)
	url, _ := listen(t, srv)
	conn := begin(t, url, "POST /returned HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	require.Empty(t, l.at("ERROR"))
}

func TestErrorOfABodyKeepsItsCause(t *testing.T) {
	srv, _ := newBodies(t)
	failed := make(chan error, 1)
	srv.HandleFunc("POST /", func(w http.ResponseWriter, req *server.Request) error {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
		_, err := io.Copy(io.Discard, req.Body)
		failed <- err
		return nil
	})
	url, _ := listen(t, srv)
	begin(t, url, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
	err := <-failed
	require.ErrorIs(t, err, params.ErrInterrupted)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}
