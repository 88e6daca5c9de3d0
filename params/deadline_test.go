package params

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
)

// A route's own time moves both deadlines of the connection; others keep the server's.
func TestRouteTimeMovesTheDeadlines(t *testing.T) {
	const timeout = 200 * time.Millisecond
	reg := reqctx.NewRegistry(reqctx.Options{})
	Provide(reg, Options{Routes: map[string]Options{"POST /photos": {ReadTimeout: time.Minute}}})
	failed := make(chan error, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/", http.NotFound)
	handler := func(w http.ResponseWriter, r *http.Request) {
		Share(r, w)
		c := reqctx.New(r.Context(), reg)
		c.SetRequest(r)
		p, _ := From(c)
		_, err := p.Form().String("a")
		_ = c.Finish()
		failed <- err
	}
	mux.HandleFunc("POST /photos", handler)
	mux.HandleFunc("POST /other", handler)
	s := httptest.NewUnstartedServer(mux)
	s.Config.ReadTimeout, s.Config.WriteTimeout = timeout, timeout
	s.Start()
	t.Cleanup(s.Close)

	begin := func(path string) net.Conn {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: "+formType+"\r\nContent-Length: 3\r\n\r\na=")
		require.NoError(t, err)
		return conn
	}
	conn := begin("/photos")
	begin("/other")
	requireReason(t, <-failed, ErrInterrupted, "was not received in time")
	<-time.After(timeout) // the deadline for the response has passed, too
	_, err := io.WriteString(conn, "1")
	require.NoError(t, err)
	require.NoError(t, <-failed)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}
