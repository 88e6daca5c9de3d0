// Package redistest starts real Redis servers for tests, on free ports of this machine. They end with
// the test. [Start] starts a single server, [StartCluster] a Cluster of six nodes, [StartSentinel] a
// master, its replica and a Sentinel. Tests can kill, stop, pause and restart them; package faultproxy
// simulates network faults.
package redistest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/redisproc"
)

// Server is a redis-server for one test.
type Server struct {
	*redisproc.Server
	tb testing.TB
}

// Start starts a redis-server for the test. If it is not installed, the test is skipped, or fails with
// CI=true. args are those of [redisproc.Start]; [redisproc.Durable] keeps its data for a Restart.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	p, err := redisproc.Start(tb.TempDir(), args...)
	return newServer(tb, p, err)
}

// newServer returns the Server of p, which ends with the test.
func newServer(tb testing.TB, p *redisproc.Server, err error) *Server {
	tb.Helper()
	switch {
	case errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == "true":
		tb.Fatal("redistest: redis-server is not installed, and CI needs it")
	case errors.Is(err, exec.ErrNotFound):
		tb.Skip("redistest: redis-server is not installed")
	case err != nil:
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(p.Close)
	return &Server{p, tb}
}

// Client returns a client that is closed with the test. change may change its options; it may be nil.
func (s *Server) Client(change func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true}
	if change != nil {
		change(o)
	}
	c := redis.NewClient(o)
	s.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Restart starts the server again, at the same address, with the data that it kept on disk: none if it
// is not durable.
func (s *Server) Restart() {
	s.tb.Helper()
	if err := s.Server.Restart(); err != nil {
		s.tb.Fatalf("redistest: restart: %v", err)
	}
}

// RestartEmpty is Restart without the data.
func (s *Server) RestartEmpty() {
	s.tb.Helper()
	if err := s.Server.RestartEmpty(); err != nil {
		s.tb.Fatalf("redistest: restart: %v", err)
	}
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
