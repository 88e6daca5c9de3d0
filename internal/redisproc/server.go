package redisproc

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Server is a redis-server. Its methods may be called concurrently.
type Server struct {
	// Addr is where it listens, on the loopback interface.
	Addr string

	args []string

	mu     sync.Mutex
	proc   *os.Process   // nil when it does not run
	exited chan struct{} // closed when proc is gone
}

// Start starts a redis-server that works in dir, and waits until it answers. args are
// added to the server's, as --name value. Without one on the machine the error is
// [exec.ErrNotFound]. The caller stops it.
func Start(dir string, args ...string) (*Server, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	s := &Server{args: append([]string{bin, "--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir", dir}, args...)}
	for range 5 { // somebody else may take the port that was free a moment ago
		if s.Addr, err = freeAddr(); err != nil {
			return nil, err
		}
		if err = s.Restart(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// Stop kills the server, as a crash would. It waits until the process is gone.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.kill()
	}
}

// kill ends the process. The caller holds s.mu.
func (s *Server) kill() {
	_ = s.proc.Kill() // it fails for a process that is gone
	<-s.exited
	s.proc = nil
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

// Restart starts a stopped server again, empty, at the same address, and waits until
// it answers.
func (s *Server) Restart() error {
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
	s.kill()
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

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
