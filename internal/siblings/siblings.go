// Package siblings runs a test in several processes at once: the test's own, the parent, and
// others that it starts, talks to, stops for a while and kills.
//
// The others run the same test as far as its call of [Serve].
package siblings

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// variable holds what a process was started with.
const variable = "LAZYREQ_SIBLING"

// Serve returns at once in the parent. In a process that it started, Serve calls serve with
// what [Start] was given, and ends the process when that returns: a failure of the test is
// one of the process. in ends when the parent does.
func Serve(t *testing.T, serve func(arg string, in io.Reader, out io.Writer)) {
	t.Helper()
	arg, started := os.LookupEnv(variable)
	if !started {
		return
	}
	out := os.NewFile(3, "out")
	defer out.Close()
	serve(arg, os.Stdin, out)
	t.SkipNow() // the rest is the parent's
}

// Process is one that the parent started. It is killed when the test ends.
type Process struct {
	In  io.WriteCloser // what serve reads
	Out io.Reader      // what it writes; ends with the process

	cmd  *exec.Cmd
	said bytes.Buffer // what the test said; read when the process is gone
	gone chan struct{}

	mu  sync.Mutex
	err error // how it ended; final when gone is closed
}

// Start starts this test in another process. The caller reads Out to its end, before or
// while it waits for the end of the process.
func Start(t *testing.T, arg string) *Process {
	t.Helper()
	bin, err := os.Executable()
	must(t, err)
	out, theirs, err := os.Pipe()
	must(t, err)
	defer theirs.Close()
	name := strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^")
	p := &Process{Out: out, gone: make(chan struct{}), cmd: exec.Command(bin, "-test.run=^"+name+"$", "-test.count=1")}
	p.cmd.Env = append(os.Environ(), variable+"="+arg)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.ExtraFiles = []*os.File{theirs}
	p.In, err = p.cmd.StdinPipe()
	must(t, err)
	must(t, p.cmd.Start())
	go func() {
		defer close(p.gone)
		err := p.cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.err = err
	}()
	t.Cleanup(func() {
		p.Kill()
		_ = out.Close()
	})
	return p
}

// Kill ends the process at once, even if it is stopped, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it fails for a process that is gone
	<-p.gone
}

// Stop lets the process stand still, with all of its connections open, until Continue. It
// may still run for a moment when Stop returns.
func (p *Process) Stop() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue lets the process go on.
func (p *Process) Continue() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// End closes In, which asks the process to end, and fails the test if it ends badly.
func (p *Process) End(t *testing.T) {
	t.Helper()
	_ = p.In.Close()
	<-p.gone
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		t.Fatalf("siblings: another process: %v\n%s", p.err, &p.said)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("siblings: %v", err)
	}
}
