package delay

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/bench/child"
)

func TestProxyDelaysAndDoesNotSerialise(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() { // an echo
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	rest, err := child.AllCPUs()
	require.NoError(t, err)
	const latency = 20 * time.Millisecond
	p, err := Start(l.Addr().String(), latency, rest)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()

	c, err := net.Dial("tcp", p.Addr)
	require.NoError(t, err)
	defer c.Close()
	const messages = 50
	began := time.Now()
	go func() {
		for range messages {
			_, _ = c.Write([]byte("x"))
		}
	}()
	_, err = io.ReadFull(c, make([]byte, messages))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), latency)
	require.Less(t, time.Since(began), messages*latency/2)
}
