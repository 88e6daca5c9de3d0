package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo starts a server that sends every line back.
func echo(t *testing.T) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

type client struct {
	*testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *client {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) send(line string) {
	c.Helper()
	_, err := io.WriteString(c.Conn, line+"\n")
	require.NoError(c, err)
}

func (c *client) receive() (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	line, err := c.r.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func (c *client) echoes(line string) {
	c.Helper()
	c.send(line)
	got, err := c.receive()
	require.NoError(c, err)
	require.Equal(c, line, got)
}

func refused(t *testing.T, p *Proxy) {
	t.Helper()
	_, err := net.Dial("tcp", p.Addr)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestNoFault(t *testing.T) {
	p := New(t, echo(t))
	long := strings.Repeat("0123456789", 200_000)
	dial(t, p).echoes(long)
	dial(t, p).echoes("short")
}

func TestDelayEachWay(t *testing.T) {
	const late = 40 * time.Millisecond
	p := New(t, echo(t))
	c := dial(t, p)
	for _, tt := range []struct{ request, reply, want time.Duration }{
		{late, 0, late}, {0, late, late}, {late, late, 2 * late},
	} {
		p.Delay(tt.request, tt.reply)
		began := time.Now()
		c.echoes("a")
		require.GreaterOrEqual(t, time.Since(began), tt.want)
	}
	require.NoError(t, p.Restore())
	began := time.Now()
	c.echoes("a")
	require.Less(t, time.Since(began), late)
}

// TestDelayIsNotARate sends many lines before the first reply arrives.
func TestDelayIsNotARate(t *testing.T) {
	p := New(t, echo(t))
	p.Delay(50*time.Millisecond, 0)
	c := dial(t, p)
	began := time.Now()
	go func() {
		for range 100 {
			_, _ = io.WriteString(c.Conn, "a\n")
			<-time.After(time.Millisecond) // so that each line is a separate chunk
		}
	}()
	for range 100 {
		line, err := c.receive()
		require.NoError(t, err)
		require.Equal(t, "a", line)
	}
	require.Less(t, time.Since(began), 2*time.Second, "not 100 times the latency")
}

func TestCutAndRestore(t *testing.T) {
	p := New(t, echo(t))
	for range 3 {
		c := dial(t, p)
		c.echoes("a")
		p.Cut()
		_, err := c.receive()
		require.Error(t, err)
		require.False(t, errors.Is(err, os.ErrDeadlineExceeded))
		refused(t, p)
		p.Cut() // has no effect the second time
		require.NoError(t, p.Restore())
		dial(t, p).echoes("b")
	}
}

// TestCutAndRestoreWhileAProcessStarts copies the listener's descriptor, as happens between fork and exec.
func TestCutAndRestoreWhileAProcessStarts(t *testing.T) {
	p := New(t, echo(t))
	for range 3 {
		inherited, err := p.l.File()
		require.NoError(t, err)
		p.Cut()
		refused(t, p)
		require.NoError(t, p.Restore())
		dial(t, p).echoes("a")
		require.NoError(t, inherited.Close())
		dial(t, p).echoes("b")
	}
}

func TestReset(t *testing.T) {
	p := New(t, echo(t))
	c := dial(t, p)
	c.echoes("a")
	p.Reset()
	_, err := c.receive()
	require.ErrorIs(t, err, syscall.ECONNRESET)
	dial(t, p).echoes("b")
}

func TestFaultInTheMiddleOfAReply(t *testing.T) {
	p := New(t, echo(t))
	c, other := dial(t, p), dial(t, p)
	other.echoes("a")
	p.CutAfter(len("12345\n123"))
	c.echoes("12345")
	c.send("12345")
	got, err := c.receive()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "123", got)
	_, err = other.receive()
	require.Error(t, err, "all connections are cut")
	refused(t, p)
	require.NoError(t, p.Restore())

	c = dial(t, p)
	p.ResetAfter(2)
	c.send("12345")
	_, err = c.receive()
	require.ErrorIs(t, err, syscall.ECONNRESET)
	dial(t, p).echoes("only once")
}

func TestStall(t *testing.T) {
	p := New(t, echo(t))
	old := dial(t, p)
	old.echoes("a")
	p.Stall()
	fresh := dial(t, p) // a new connection is accepted
	for _, c := range []*client{old, fresh} {
		c.send("late")
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := c.r.ReadByte()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}
	require.NoError(t, p.Restore())
	for _, c := range []*client{old, fresh} {
		got, err := c.receive()
		require.NoError(t, err)
		require.Equal(t, "late", got)
	}
}

// In TestWithoutAServer, no server listens at the proxy's target.
func TestWithoutAServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := New(t, l.Addr().String())
	require.NoError(t, l.Close())
	_, err = dial(t, p).receive()
	require.Error(t, err)
	require.False(t, errors.Is(err, os.ErrDeadlineExceeded))
}
