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

	"github.com/lazyreq/lazyreq/internal/loopback"
)

// Server is a redis-server. Its methods may be called concurrently. While it does not
// run, its address is refused, and nobody else gets it.
type Server struct {
	// Addr is where it listens, on the loopback interface.
	Addr string

	bin, dir string
	args     []string

	mu     sync.Mutex
	ports  []*loopback.Port
	proc   *os.Process   // nil when it does not run
	exited chan struct{} // closed when proc is gone
}

// Kill ends the server at once, as a crash does, even one that is paused. It waits until
// the process is gone.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop asks the server to end in good order. It waits until the process is gone, which
// takes a moment more than with Kill.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Close kills the server and gives its address away. It is for the end.
func (s *Server) Close() {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

// release gives the address away. The caller holds s.mu, or is alone.
func (s *Server) release() {
	for _, p := range s.ports {
		p.Release()
	}
	s.ports = nil
}

func (s *Server) end(how syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	_ = s.proc.Signal(how)             // it fails for a process that is gone
	_ = s.proc.Signal(syscall.SIGCONT) // a paused process hears only SIGKILL
	select {
	case <-s.exited:
	case <-time.After(5 * time.Second): // it does not end in good order
		_ = s.proc.Kill()
		<-s.exited
	}
	s.proc = nil
}

// Pause stops the server's process without closing its connections, as a machine
// does that hangs. The returned function lets it go on. A server that does not run
// stays as it is.
func (s *Server) Pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc
	if p == nil {
		return func() {}
	}
	_ = p.Signal(syscall.SIGSTOP)
	return func() { _ = p.Signal(syscall.SIGCONT) }
}

// Restart starts a server again that was killed or stopped, at the same address, and
// waits until it answers. It has the data that it kept on disk, none if it is not
// [Durable]. A server that runs is killed first.
func (s *Server) Restart() error {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run()
}

// RestartEmpty is Restart without any data.
func (s *Server) RestartEmpty() error {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.wipe(); err != nil {
		return err
	}
	return s.run()
}

// run starts the process and waits until it answers. The caller holds s.mu.
func (s *Server) run() error {
	var log bytes.Buffer // read only when the process is gone
	cmd := exec.Command(s.bin, s.args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.proc, s.exited = cmd.Process, make(chan struct{})
	exited := s.exited
	go func() { _ = cmd.Wait(); close(exited) }()

	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range 5000 {
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

// answers tells whether a server at addr answers, and has read what it keeps.
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
