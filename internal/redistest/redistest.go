// Package redistest gives tests a Redis: the real redis-server, on free ports of this
// machine, started for the test and gone with it. [Start] makes a single server,
// [StartCluster] a Cluster of six nodes, [StartSentinel] a master, its replica and a
// Sentinel. They are killed, stopped, paused and started again; for faults of the
// network in front of them there is package faultproxy.
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

// Server is a redis-server of a test's own.
type Server struct {
	*redisproc.Server
	tb testing.TB
}

// Start starts a redis-server for the test. Without one on the machine the test is
// skipped, but with CI=true it fails: there it must run. args are added to the
// server's, as --name value; [redisproc.Durable] keeps its data for a Restart.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	p, err := redisproc.Start(tb.TempDir(), args...)
	return started(tb, p, err)
}

// started makes p, which lives as long as the test, a Server of the test.
func started(tb testing.TB, p *redisproc.Server, err error) *Server {
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

// Restart starts the server again, at the same address, with the data that it kept on
// disk: none if it is not durable.
func (s *Server) Restart() {
	s.tb.Helper()
	if err := s.Server.Restart(); err != nil {
		s.tb.Fatalf("redistest: restart: %v", err)
	}
}

// RestartEmpty is Restart without any data.
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
