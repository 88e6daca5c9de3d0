package testhost

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// variable is the environment variable that holds the argument of StartProcess in the other process.
const variable = "LAZYREQ_MULTIPROC"

// ServeProcess returns at once in the parent. In a process that [StartProcess] started, it calls serve with the argument,
// and ends the process when serve returns. If the test fails there, the process fails. in ends when the parent closes
// it or ends.
func ServeProcess(t *testing.T, serve func(arg string, in io.Reader, out io.Writer)) {
	t.Helper()
	arg, started := os.LookupEnv(variable)
	if !started {
		return
	}
	out := os.NewFile(3, "out")
	defer out.Close()
	serve(arg, os.Stdin, out)
	t.SkipNow() // only the parent runs the rest of the test
}

// Process is a process that the parent started. It is killed at the end of the test.
type Process struct {
	In  io.WriteCloser // serve reads from it
	Out io.Reader      // serve writes to it; it ends with the process

	cmd  *exec.Cmd
	log  bytes.Buffer  // the output of the test
	err  error         // the result of the process
	done chan struct{} // closed when the process has ended; then log and err may be read
}

// StartProcess starts this test in another process. The caller must read Out to its end before it waits for the end of
// the process, or at the same time.
func StartProcess(t *testing.T, arg string) *Process {
	t.Helper()
	bin, err := os.Executable()
	must(t, err)
	out, childOut, err := os.Pipe()
	must(t, err)
	defer childOut.Close()
	name := strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^")
	p := &Process{Out: out, done: make(chan struct{}), cmd: exec.Command(bin, "-test.run=^"+name+"$", "-test.count=1")}
	p.cmd.Env = append(os.Environ(), variable+"="+arg)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.ExtraFiles = []*os.File{childOut}
	p.In, err = p.cmd.StdinPipe()
	must(t, err)
	must(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.Kill()
		_ = out.Close()
	})
	return p
}

// Kill kills the process, even while it is paused, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails if the process has ended
	<-p.done
}

// Pause stops the process until Resume. Its connections stay open. The process may run for a moment after Pause returns.
func (p *Process) Pause() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (p *Process) Resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// End closes In, which asks the process to end, and fails the test if the process fails.
func (p *Process) End(t *testing.T) {
	t.Helper()
	_ = p.In.Close()
	<-p.done
	if p.err != nil {
		t.Fatalf("testhost: another process: %v\n%s", p.err, &p.log)
	}
}
