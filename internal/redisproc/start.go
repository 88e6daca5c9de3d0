package redisproc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/lazyreq/lazyreq/internal/loopback"
)

// Durable are the args of a server whose data outlives it, up to the last write that it
// answered.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// Start starts a redis-server that works in dir, an empty folder, and waits until it
// answers. It keeps nothing on disk, unless args say otherwise, which are added to the
// server's, as --name value. Without one on the machine the error is
// [exec.ErrNotFound]. The caller kills or stops it.
func Start(dir string, args ...string) (*Server, error) {
	port, err := loopback.Reserve()
	if err != nil {
		return nil, err
	}
	return start(&Server{Addr: port.Addr(), dir: dir, ports: []*loopback.Port{port}}, append(plain(dir), args...))
}

// StartNode is Start for a node of a Cluster, which knows no other node yet. Its second
// port, for the other nodes, is 10000 above the first.
func StartNode(dir string, args ...string) (*Server, error) {
	port, bus, err := loopback.ReservePair(10000)
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: port.Addr(), dir: dir, ports: []*loopback.Port{port, bus}}
	return start(s, append(append(plain(dir), "--cluster-enabled", "yes"), args...))
}

// StartSentinel is Start for a Sentinel with this configuration.
func StartSentinel(dir, config string) (*Server, error) {
	port, err := loopback.Reserve()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "sentinel.conf") // it writes there what it learns
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		port.Release()
		return nil, err
	}
	s := &Server{Addr: port.Addr(), dir: dir, ports: []*loopback.Port{port}}
	return start(s, []string{file, "--sentinel", "--bind", "127.0.0.1", "--dir", dir})
}

func plain(dir string) []string {
	return []string{"--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir", dir}
}

func start(s *Server, args []string) (*Server, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		s.release()
		return nil, err
	}
	s.bin, s.args = bin, append(args, "--port", s.ports[0].String())
	if err := s.Restart(); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// wipe removes what the server wrote.
func (s *Server) wipe() error {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("redisproc: %w", err)
	}
	for _, f := range files {
		if err := os.RemoveAll(filepath.Join(s.dir, f.Name())); err != nil {
			return fmt.Errorf("redisproc: %w", err)
		}
	}
	return nil
}
