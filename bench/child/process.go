package child

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Process is a process that serves until it is ended. It is not safe for
// concurrent use.
type Process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	log bytes.Buffer // what it wrote to its standard error; to be read when it is gone
	// patience is the longest time to wait for a line or for the end. Then the process is killed.
	patience time.Duration
}

// Start starts a command on these processors. Its standard streams are the process's.
func Start(cmd *exec.Cmd, on CPUs) (*Process, error) {
	p := &Process{cmd: cmd, patience: 10 * time.Second}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out, cmd.Stderr = bufio.NewReader(out), &p.log
	if err := on.startOn(cmd); err != nil {
		return nil, err
	}
	return p, nil
}

// StartRole starts this program in a role that ends when its standard input does, and
// returns the first line that it prints, too.
func StartRole(role string, task any, on CPUs) (p *Process, line string, err error) {
	cmd, err := Command(context.Background(), role, task, len(on))
	if err != nil {
		return nil, "", err
	}
	if p, err = Start(cmd, on); err != nil {
		return nil, "", err
	}
	if line, err = p.ReadLine(); err != nil {
		return nil, "", p.Abort(err)
	}
	return p, line, nil
}

// Pid is the process's number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// ReadLine returns the next line of what the process prints. If there is none for 10 s, it kills the process.
func (p *Process) ReadLine() (string, error) {
	defer p.killLater().Stop()
	s, err := p.out.ReadString('\n')
	if err != nil {
		err = fmt.Errorf("the process has ended or was killed because it did not answer: %w", err)
	}
	return strings.TrimSpace(s), err
}

func (p *Process) killLater() *time.Timer {
	return time.AfterFunc(p.patience, func() { _ = p.cmd.Process.Kill() })
}

// Poll gives the process an empty line, and returns the line with which it answers.
func (p *Process) Poll() (string, error) {
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		return "", err
	}
	return p.ReadLine()
}

// Abort ends a process that has not started as it should, and returns the reason.
func (p *Process) Abort(why error) error {
	_ = p.Stop(syscall.SIGKILL)
	return fmt.Errorf("%s did not start: %w\n%s", p.cmd.Path, why, &p.log)
}

// Close ends the standard input of the process, which ends with it, and waits until it is
// gone.
func (p *Process) Close() error { return p.wait() }

// Stop sends the process a signal to end by, and waits until it is gone.
func (p *Process) Stop(by syscall.Signal) error {
	_ = p.cmd.Process.Signal(by) // it fails for one that is gone
	return p.wait()
}

func (p *Process) wait() error {
	_ = p.in.Close()
	defer p.killLater().Stop()
	return p.cmd.Wait()
}
