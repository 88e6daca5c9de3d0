package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSecondSignal checks that the program waits for requests in progress after a signal, and that a second signal
// ends it at once.
func TestSecondSignal(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program, "-addr", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), programVariable+"=yes")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	addr := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(lines.Text())
	require.NotEmpty(t, addr, lines.Text())

	// This request never ends, because its body is incomplete.
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
		"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "100 Continue", "the handler reads it")

	ended := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, out)
		ended <- cmd.Wait()
	}()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		another, err := net.Dial("tcp", addr)
		if err == nil {
			_ = another.Close()
		}
		return err != nil
	}, 10*time.Second, time.Millisecond, "it stops")
	require.Empty(t, ended, "the request goes on")

	require.Eventually(t, func() bool {
		_ = cmd.Process.Signal(syscall.SIGTERM) // sent repeatedly, because the program may not have handled the first signal yet
		return len(ended) > 0
	}, 5*time.Second, 10*time.Millisecond)
	<-ended
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, status.Signaled(), cmd.ProcessState)
	require.Equal(t, syscall.SIGTERM, status.Signal())
}
