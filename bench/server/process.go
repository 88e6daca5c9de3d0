package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// process is a stack that serves in a process of its own.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	log  *bytes.Buffer // what it wrote to its standard error; to be read when it is gone
	addr string
}

// startStack starts a stack on cpus and waits until it listens.
func startStack(name, redisAddr string, on cpus) (*process, error) {
	p := &process{log: new(bytes.Buffer)}
	var err error
	if p.cmd, err = child(context.Background(), role{Stack: name, Redis: redisAddr}, len(on)); err != nil {
		return nil, err
	}
	p.cmd.Stderr = p.log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := on.start(p.cmd); err != nil {
		return nil, err
	}
	if p.addr, err = p.line(); err != nil {
		_ = p.close()
		return nil, fmt.Errorf("did not start: %w\n%s", err, p.log)
	}
	return p, nil
}

// child returns the command that runs this program in a role, on n processors.
func child(ctx context.Context, r role, n int) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), roleVar+"="+string(text), "GOMAXPROCS="+strconv.Itoa(n))
	return cmd, nil
}

// used returns the processor time that the process took so far.
func (p *process) used() (time.Duration, error) {
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		return 0, err
	}
	line, err := p.line()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(line, 10, 64)
	return time.Duration(n) * time.Microsecond, err
}

func (p *process) line() (string, error) {
	s, err := p.out.ReadString('\n')
	return strings.TrimSpace(s), err
}

// close ends the process and waits until it is gone.
func (p *process) close() error {
	_ = p.in.Close() // it ends by itself then
	kill := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	return p.cmd.Wait()
}
