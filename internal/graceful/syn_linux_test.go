package graceful

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// If a client connects while a listener stops, its connection is refused. It is not accepted and then reset.
func TestNewConnectionsAreRefused(t *testing.T) {
	for _, on := range []string{"127.0.0.1:0", ":0"} {
		l, err := Listen(on)
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		dropSYN(l)
		result := make(chan error, 1)
		go func() {
			_, err := net.Dial("tcp", "127.0.0.1:"+port)
			result <- err
		}()
		select {
		case err := <-result:
			require.NoError(t, err)
			require.Fail(t, "accepted")
		case <-time.After(100 * time.Millisecond):
		}
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-result, syscall.ECONNREFUSED)
	}
}

// A client is accepted if its handshake has begun before the listener stops.
func TestHandshakesGoOn(t *testing.T) {
	l := listen(t)
	defer l.Close()
	// With this option, the client's ACK waits for its first data.
	late := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			require.NoError(t, syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, 1))
		})
	}}
	client, err := late.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, l.(*net.TCPListener).SetDeadline(time.Now().Add(10*time.Millisecond)))
	_, err = l.Accept()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the handshake has not ended")

	dropSYN(l)
	_, err = client.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, l.(*net.TCPListener).SetDeadline(time.Time{}))
	conn, err := l.Accept()
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	require.NoError(t, err)
}
