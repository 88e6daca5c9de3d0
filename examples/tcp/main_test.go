package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is a writer that keeps what run prints, and reports when it contains the address.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	found chan string
}

var address = regexp.MustCompile(`Listening on (\S+)`)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if m := address.FindStringSubmatch(o.text.String()); m != nil && o.found != nil {
		o.found <- m[1]
		o.found = nil
	}
	return len(p), nil
}

func TestLines(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &output{found: make(chan string, 1)}
	addr := out.found
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-addr", "127.0.0.1:0"}, out) }()
	to := <-addr

	ask := func(lines string) string {
		conn, err := net.Dial("tcp", to)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = io.WriteString(conn, lines)
		require.NoError(t, err)
		said, err := io.ReadAll(conn)
		require.NoError(t, err)
		return string(said)
	}
	require.Regexp(t, `^\d{4}-\d\d-\d\dT.*\nunknown command.*\n$`, ask("TIME\nNO\nQUIT\n"))
	who := ask("WHO\nWHO\nQUIT\n")
	var a, b string
	_, err := fmt.Sscanf(who, "%s\n%s\n", &a, &b)
	require.NoError(t, err)
	require.Equal(t, a, b)
	for range 8 {
		require.Empty(t, ask("QUIT\n"))
	}
	require.Contains(t, ask(""), "too many connections; try again in")

	// An idle connection must not delay the end of the program.
	conn, err := net.Dial("tcp", to)
	require.NoError(t, err)
	defer conn.Close()
	_, err = bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err, "refused, as the limit is used up")
	cancel()
	require.NoError(t, <-ended)
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	require.ErrorContains(t, run(t.Context(), []string{"-addr", l.Addr().String()}, io.Discard), "in use")
}
