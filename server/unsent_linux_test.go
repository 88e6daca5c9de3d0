package server_test

import (
	"bufio"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

// TestSlowReaderOverTCPIsNotCut checks that a client which reads 640 KiB a second gets all 20 MB, although the
// kernel buffers megabytes and WriteTimeout is 2 s.
func TestSlowReaderOverTCPIsNotCut(t *testing.T) {
	t.Parallel()
	const size = 20 << 20
	srv, err := server.New(server.Options{WriteTimeout: 2 * time.Second})
	require.NoError(t, err)
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		_, err := w.Write(make([]byte, size))
		return err
	})
	url, _ := listenItself(t, srv)
	c := begin(t, url, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 4<<10), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var got int64
	for range 40 {
		<-tick.C
		n, err := io.CopyN(io.Discard, resp.Body, 64<<10)
		require.NoError(t, err)
		got += n
	}
	n, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.EqualValues(t, size, got+n)
}
