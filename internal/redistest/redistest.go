// Package redistest gives tests a Redis: the real redis-server, on a free port of
// this machine, started for the test and stopped with it.
package redistest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server of a test's own, without persistence.
type Server struct {
	Addr string

	tb   testing.TB
	args []string

	mu     sync.Mutex
	proc   *os.Process   // nil when it does not run
	exited chan struct{} // closed when proc is gone
}

// Start starts a redis-server for the test. Without one on the machine the test is
// skipped, but with CI=true it fails: there it must run. args are added to the
// server's, as --name value.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatal("redistest: redis-server is not installed, and CI needs it")
		}
		tb.Skip("redistest: redis-server is not installed")
	}
	s := &Server{tb: tb, args: append([]string{bin, "--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir", tb.TempDir()}, args...)}
	for range 5 { // somebody else may take the port that was free a moment ago
		s.Addr = freeAddr(tb)
		if err = s.run(); err == nil {
			tb.Cleanup(s.Stop)
			return s
		}
	}
	tb.Fatalf("redistest: %v", err)
	return nil
}

// Client returns a client, closed with the test. Its options may be changed by
// change, which may be nil.
func (s *Server) Client(change func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true}
	if change != nil {
		change(o)
	}
	c := redis.NewClient(o)
	s.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Stop kills the server, as a crash would. It waits until the process is gone.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		_ = s.proc.Kill()
		<-s.exited
		s.proc = nil
	}
}

// Restart starts a stopped server again, empty, at the same address.
func (s *Server) Restart() {
	s.tb.Helper()
	if err := s.run(); err != nil {
		s.tb.Fatalf("redistest: restart: %v", err)
	}
}

// Pause stops the server's process without closing its connections, as a machine
// does that hangs. The returned function lets it go on.
func (s *Server) Pause() (resume func()) {
	s.mu.Lock()
	p := s.proc
	s.mu.Unlock()
	_ = p.Signal(syscall.SIGSTOP)
	return func() { _ = p.Signal(syscall.SIGCONT) }
}

// Calls returns how often a command was called since the server started, and the
// microseconds that a call took on average: a line of INFO commandstats.
func (s *Server) Calls(command string) (calls int, usecPerCall float64) {
	s.tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
	defer c.Close()
	info, err := c.Info(context.Background(), "commandstats").Result()
	if err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	for line := range strings.Lines(info) {
		fields, ok := strings.CutPrefix(strings.TrimSpace(line), "cmdstat_"+strings.ToLower(command)+":")
		if !ok {
			continue
		}
		for field := range strings.SplitSeq(fields, ",") {
			switch name, value, _ := strings.Cut(field, "="); name {
			case "calls":
				calls, _ = strconv.Atoi(value)
			case "usec_per_call":
				usecPerCall, _ = strconv.ParseFloat(value, 64)
			}
		}
	}
	return calls, usecPerCall
}

// run starts the process and waits until it answers.
func (s *Server) run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, port, _ := net.SplitHostPort(s.Addr)
	var log bytes.Buffer // read only when the process is gone
	cmd := exec.Command(s.args[0], append(s.args[1:], "--port", port)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.proc, s.exited = cmd.Process, make(chan struct{})
	go func() { _ = cmd.Wait(); close(s.exited) }()

	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range 2500 {
		select {
		case <-s.exited:
			s.proc = nil
			return fmt.Errorf("redis-server ended at once:\n%s", &log)
		case <-tick.C:
		}
		if answers(s.Addr) {
			return nil
		}
	}
	_ = s.proc.Kill()
	<-s.exited
	s.proc = nil
	return fmt.Errorf("redis-server does not answer:\n%s", &log)
}

func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	b := make([]byte, 7)
	n, _ := conn.Read(b)
	return string(b[:n]) == "+PONG\r\n"
}

func freeAddr(tb testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
