package testhost

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

// RedisProcess is a redis-server: alone, a node of a Cluster, or a Sentinel. Its methods are safe for concurrent use. While it does not run,
// connections to its address are refused, and the address stays reserved.
type RedisProcess struct {
	// Addr is its address on the loopback interface.
	Addr string

	bin, dir string
	args     []string
	env      []string // besides this process' own

	mu     sync.Mutex
	ports  []*Port
	proc   *os.Process   // nil if it does not run
	exited chan struct{} // closed when proc has ended
}

// Kill kills the server, even while it is paused, and waits for the end of the process.
func (s *RedisProcess) Kill() { s.end(syscall.SIGKILL) }

// Stop shuts the server down and waits for the end of the process, which takes longer than Kill.
func (s *RedisProcess) Stop() { s.end(syscall.SIGTERM) }

// Close kills the server and releases its address.
func (s *RedisProcess) Close() {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

// release releases the address. The caller holds s.mu, or is alone.
func (s *RedisProcess) release() {
	for _, p := range s.ports {
		p.Release()
	}
	s.ports = nil
}

func (s *RedisProcess) end(how syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	_ = s.proc.Signal(how)             // fails if the process has ended
	_ = s.proc.Signal(syscall.SIGCONT) // a paused process reacts only to SIGKILL
	select {
	case <-s.exited:
	case <-time.After(5 * time.Second): // it does not shut down
		_ = s.proc.Kill()
		<-s.exited
	}
	s.proc = nil
}

// Pause stops the server's process without closing its connections, like a machine that hangs. The
// returned function resumes it. Pause does nothing if the server does not run.
func (s *RedisProcess) Pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc
	if p == nil {
		return func() {}
	}
	_ = p.Signal(syscall.SIGSTOP)
	return func() { _ = p.Signal(syscall.SIGCONT) }
}

// Restart starts the server again at the same address and waits until it answers. It kills the server
// first if it runs. The data is what the server kept on disk, none if it is not [Durable].
func (s *RedisProcess) Restart() error {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run()
}

// RestartEmpty is Restart without the data.
func (s *RedisProcess) RestartEmpty() error {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.wipe(); err != nil {
		return err
	}
	return s.run()
}

// run starts the process and waits until it answers. The caller holds s.mu.
func (s *RedisProcess) run() error {
	var log bytes.Buffer // read after the end of the process
	cmd := exec.Command(s.bin, s.args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = append(os.Environ(), s.env...)
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
		if isServing(s.Addr) {
			return nil
		}
	}
	_ = s.proc.Kill()
	<-s.exited
	s.proc = nil
	return fmt.Errorf("redis-server does not answer:\n%s", &log)
}

// isServing reports whether a server at addr answers and has loaded its data.
func isServing(addr string) bool {
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
