package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/redisinfo"
)

// database is a redis-server of the suite's own, without persistence.
type database struct {
	addr   string
	dir    string
	cmd    *exec.Cmd
	client *redis.Client // for questions about it
}

// startRedis starts one on these processors and waits until it answers.
func startRedis(ctx context.Context, on child.CPUs) (*database, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w: redis-server is not installed", harness.ErrMissing)
	}
	dir, err := os.MkdirTemp("", "bench-redis-")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &database{addr: l.Addr().String(), dir: dir}
	_ = l.Close() // the port is free now
	_, port, _ := net.SplitHostPort(d.addr)
	d.cmd = exec.Command(bin, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no")
	var log bytes.Buffer
	d.cmd.Stdout = &log
	if err := on.Do(d.cmd.Start); err != nil {
		return nil, err
	}
	d.client = redis.NewClient(&redis.Options{Addr: d.addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	for range 500 {
		if err = d.client.Ping(ctx).Err(); err == nil {
			return d, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	d.close()
	return nil, fmt.Errorf("redis-server does not answer: %w\n%s", err, &log)
}

func (d *database) close() {
	_ = d.client.Close()
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	_ = os.RemoveAll(d.dir)
}

// commandCounts returns how often each command was called so far, by clients and by scripts.
func (d *database) commandCounts(ctx context.Context) (map[string]int, error) {
	info, err := redisinfo.Read(ctx, d.client)
	delete(info.Calls, "info")
	return info.Calls, err
}

// countCommandsDuring returns how often each command is called by clients while fn runs; what
// scripts call is not counted. MONITOR tells them apart, which INFO does not.
func (d *database) countCommandsDuring(ctx context.Context, fn func() error) (map[string]int, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, "MONITOR\r\n"); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(conn, make([]byte, len("+OK\r\n"))); err != nil {
		return nil, err
	}
	if err := fn(); err != nil {
		return nil, err
	}
	end := "end of " + d.dir
	if err := d.client.Echo(ctx, end).Err(); err != nil {
		return nil, err
	}
	var seen []byte
	for buf := make([]byte, 1<<16); !bytes.Contains(seen, []byte(end)); {
		n, err := conn.Read(buf)
		if err != nil {
			return nil, err
		}
		seen = append(seen, buf[:n]...)
	}
	return countClientCommands(string(seen)), nil
}

// countClientCommands counts the commands of a log of MONITOR, whose lines are such as
//
//	+1700000000.123456 [0 127.0.0.1:50000] "get" "key"
//	+1700000000.123457 [0 lua] "get" "key"
func countClientCommands(log string) map[string]int {
	calls := map[string]int{}
	for line := range strings.Lines(log) {
		_, rest, ok := strings.Cut(line, " [")
		source, command, ok2 := strings.Cut(rest, `] "`)
		if !ok || !ok2 || strings.HasSuffix(source, " lua") {
			continue
		}
		name, _, _ := strings.Cut(command, `"`)
		calls[strings.ToLower(name)]++
	}
	delete(calls, "echo")
	return calls
}
