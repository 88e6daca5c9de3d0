package testhost

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Durable is the arguments of a server that keeps its data on disk, up to the last acknowledged write.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// RunRedis starts a redis-server in dir, an empty folder, and waits until it answers. args are environment
// variables, as NAME=value, and then arguments of the server, as --name value; without them it keeps nothing on disk. With --cluster-enabled yes it
// is a node of a Cluster, and its second port, for other nodes, is 10000 above the first. RunRedis returns
// [exec.ErrNotFound] if redis-server is not installed. The caller closes the server.
func RunRedis(dir string, args ...string) (*RedisProcess, error) {
	reserve := reserveOne
	if slices.Contains(args, "--cluster-enabled") {
		reserve = reserveNode
	}
	ports, err := reserve()
	if err != nil {
		return nil, err
	}
	env := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--") })
	if env < 0 {
		env = len(args)
	}
	plain := []string{"--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir", dir}
	return start(&RedisProcess{dir: dir, env: args[:env], ports: ports}, append(plain, args[env:]...))
}

// runSentinel starts a Sentinel with this configuration.
func runSentinel(dir, config string) (*RedisProcess, error) {
	ports, err := reserveOne()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "sentinel.conf") // the Sentinel rewrites it
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		ports[0].Release()
		return nil, err
	}
	return start(&RedisProcess{dir: dir, ports: ports}, []string{file, "--sentinel", "--bind", "127.0.0.1", "--dir", dir})
}

func reserveOne() ([]*Port, error) {
	port, err := ReservePort()
	return []*Port{port}, err
}

func reserveNode() ([]*Port, error) {
	port, bus, err := reservePair(10000)
	return []*Port{port, bus}, err
}

func start(s *RedisProcess, args []string) (*RedisProcess, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		s.release()
		return nil, err
	}
	s.Addr = s.ports[0].Addr()
	s.bin, s.args = bin, append(args, "--port", s.ports[0].String())
	if err := s.Restart(); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// wipe removes the server's files.
func (s *RedisProcess) wipe() error {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("testhost: %w", err)
	}
	for _, f := range files {
		if err := os.RemoveAll(filepath.Join(s.dir, f.Name())); err != nil {
			return fmt.Errorf("testhost: %w", err)
		}
	}
	return nil
}
