package testhost

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
)

func started(t *testing.T, args ...string) *RedisProcess {
	t.Helper()
	testenv.LookPath(t, "redis-server")
	s, err := RunRedis(t.TempDir(), args...)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// ask sends an inline command and returns the reply, or the text of the error.
func ask(s *RedisProcess, command string) string {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return "refused"
		}
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = conn.Write([]byte(command + "\r\n"))
	b := make([]byte, 100)
	n, err := conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "silence"
	}
	return strings.TrimSpace(string(b[:n]))
}

func TestServerStopAndRestart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		end  func(*RedisProcess)
		want string // the reply to GET k
	}{
		"killed":           {nil, (*RedisProcess).Kill, "$-1"},
		"stopped":          {nil, (*RedisProcess).Stop, "$-1"},
		"killed, durable":  {Durable, (*RedisProcess).Kill, "$1\r\nv"},
		"stopped, durable": {Durable, (*RedisProcess).Stop, "$1\r\nv"},
	} {
		s := started(t, tt.args...)
		require.Equal(t, "+OK", ask(s, "SET k v"), name)
		tt.end(s)
		tt.end(s) // has no effect the second time
		require.Equal(t, "refused", ask(s, "PING"), name)
		require.NoError(t, s.Restart(), name)
		require.Equal(t, tt.want, ask(s, "GET k"), name)
	}
}

func TestPausedServerIsSilent(t *testing.T) {
	t.Parallel()
	s := started(t)
	require.Equal(t, "+OK", ask(s, "SET k v"))
	resume := s.Pause()
	require.Equal(t, "silence", ask(s, "PING"))
	resume()
	require.Equal(t, "$1\r\nv", ask(s, "GET k"))

	for _, end := range []func(){s.Stop, s.Kill} { // both also end a paused server
		s.Pause()
		began := time.Now()
		end()
		require.Less(t, time.Since(began), 4*time.Second)
		require.NoError(t, s.Restart())
	}
	s.Kill()
	s.Pause()()
}

func TestStartFailureHasReason(t *testing.T) {
	t.Parallel()
	testenv.LookPath(t, "redis-server")
	_, err := RunRedis(t.TempDir(), "--no-such-option", "yes")
	require.ErrorContains(t, err, "no-such-option")
}
