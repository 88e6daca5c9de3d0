package testhost

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Durable holds the arguments for a server that keeps its data on disk, including the last acknowledged write.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// RedisProcess is a redis-server: a single server, a node of a Cluster, or a Sentinel. Its methods are safe for
// concurrent use. While it does not run, its address stays reserved and refuses connections.
type RedisProcess struct {
	Addr string // on the loopback interface

	bin  string
	args []string
	env  []string // added to this process's environment

	mu     sync.Mutex
	ports  []*Port
	proc   *os.Process   // nil if it does not run
	exited chan struct{} // closed when proc has ended
}

// RunRedis starts a redis-server in dir, an empty folder, and waits until it answers. The first args are environment
// variables, such as NAME=value. The others are arguments of the server, such as --name value. By default, the server
// keeps nothing on disk. With --cluster-enabled yes, it is a node of a Cluster, and other nodes connect to a second
// port, 10000 above the first. RunRedis returns [exec.ErrNotFound] if redis-server is not installed. The caller closes
// the server.
func RunRedis(dir string, args ...string) (*RedisProcess, error) {
	env := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--") })
	if env < 0 {
		env = len(args)
	}
	plain := []string{"--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir", dir}
	return start(args[:env], slices.Contains(args, "--cluster-enabled"), append(plain, args[env:]...))
}

// runSentinel starts a Sentinel with this configuration.
func runSentinel(dir, config string) (*RedisProcess, error) {
	file := filepath.Join(dir, "sentinel.conf") // the Sentinel rewrites it
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return start(nil, false, []string{file, "--sentinel", "--bind", "127.0.0.1", "--dir", dir})
}

func start(env []string, isNode bool, args []string) (*RedisProcess, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	var ports []*Port
	if isNode {
		ports, err = reservePair(10000)
	} else {
		var port *Port
		port, err = ReservePort()
		ports = []*Port{port}
	}
	if err != nil {
		return nil, err
	}
	s := &RedisProcess{Addr: ports[0].Addr(), bin: bin, args: append(args, "--port", ports[0].String()), env: env, ports: ports}
	if err := s.Restart(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Kill kills the server, even while it is paused, and waits for the end of the process.
func (s *RedisProcess) Kill() { s.end(syscall.SIGKILL) }

// Stop shuts the server down and waits for the end of the process. This takes longer than Kill.
func (s *RedisProcess) Stop() { s.end(syscall.SIGTERM) }

// Close kills the server and releases its address.
func (s *RedisProcess) Close() {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
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

// Pause stops the server's process without closing its connections, like a machine that hangs. The returned function
// resumes it. Pause does nothing if the server does not run.
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

// Restart starts the server again at the same address and waits until it answers. It kills the server first if it
// runs. A server that is not [Durable] has lost its data.
func (s *RedisProcess) Restart() error {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	var log bytes.Buffer // read after the end of the process
	cmd := exec.Command(s.bin, s.args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = append(os.Environ(), s.env...)
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	if err := waitServing(s.Addr, exited); err != nil {
		_ = cmd.Process.Kill()
		<-exited
		return fmt.Errorf("%w:\n%s", err, &log)
	}
	s.proc, s.exited = cmd.Process, exited
	return nil
}

// waitServing waits until a server at addr answers and has loaded its data.
func waitServing(addr string, exited <-chan struct{}) error {
	tick, late := time.NewTicker(2*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !isServing(addr) {
		select {
		case <-exited:
			return fmt.Errorf("redis-server ended at once")
		case <-late:
			return fmt.Errorf("redis-server does not answer")
		case <-tick.C:
		}
	}
	return nil
}

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
