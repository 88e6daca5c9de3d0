package graceful

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve calls s.Serve on another goroutine. The test must call Shutdown before it ends.
func serve(t *testing.T, s *Server, l, base net.Listener) {
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, base) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

// listen listens on a port of this machine.
func listen(t *testing.T) net.Listener {
	l, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// stop begins a Shutdown. The channel gets its result.
func stop(ctx context.Context, s *Server) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	return done
}

// ending waits until s.Ending reports true.
func ending(t *testing.T, s *Server) {
	t.Helper()
	require.Eventually(t, s.Ending, 20*time.Second, time.Millisecond)
}

// client is a client's connection.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, addr net.Addr) *client {
	t.Helper()
	conn, err := net.Dial(addr.Network(), addr.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return newClient(t, conn)
}

func newClient(t *testing.T, conn net.Conn) *client {
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return &client{conn, bufio.NewReader(conn)}
}

func (c *client) send(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

// receive returns the body of a response, and whether the connection ends with it.
func (c *client) receive(t *testing.T) (body string, last bool) {
	t.Helper()
	res, err := http.ReadResponse(c.in, nil)
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(text), res.Close
}

// ends waits until the server closes the connection.
func (c *client) ends(t *testing.T) {
	t.Helper()
	_, err := c.in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
