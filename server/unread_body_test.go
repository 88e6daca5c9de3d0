package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

// A client whose body is refused can read the response: the connection ends in order, and not with a reset,
// which could come first.
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
