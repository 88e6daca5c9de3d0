package ratecheck

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Plan says who takes, from what.
type Plan struct {
	// Server returns what Taker needs to find the limiter's server. Only the test's own
	// process calls it.
	Server func() (addr string)
	// Taker returns what takes n units from the subject. It is called once in each
	// process; what it returns is called concurrently.
	Taker func(addr string) func(ctx context.Context, n int64) (allowed bool, err error)

	Processes  int           // the test's own one included
	Killed     int           // of the others, those that are killed while takes are sent
	Goroutines int           // of each process
	Units      int64         // a take is of 1 to so many
	For        time.Duration // how long takes are sent
}

// The environment of a child.
const (
	addrVariable = "LAZYREQ_RATECHECK"
	logVariable  = "LAZYREQ_RATECHECK_LOG" // the folder of the logs
)

// Run carries out the plan and returns the takes of all processes. The others run this
// test as far as this call, which does not return there, so a test calls it once, and
// does before it what both need.
func Run(t *testing.T, p Plan) []Take {
	t.Helper()
	if addr, child := os.LookupEnv(addrVariable); child {
		p.serve(t, addr)
	}
	addr, logs := p.Server(), t.TempDir()
	taker := p.Taker(addr)
	children := make([]*child, p.Processes-1)
	for i := range children {
		children[i] = begin(t, addr, logs)
	}
	for _, c := range children {
		c.ready()
	}
	for i, c := range children {
		c.release()
		if i < p.Killed {
			// One after the other, within the middle of the time.
			kill := time.AfterFunc(p.For*time.Duration(i+1)/time.Duration(p.Killed+1), c.kill)
			t.Cleanup(func() { kill.Stop() })
		}
	}
	must(t, p.load(t.Context(), taker, logs))
	for i, c := range children {
		c.end(t, i < p.Killed)
	}
	takes, processes, err := readLogs(logs)
	must(t, err)
	if processes < p.Processes {
		t.Fatalf("ratecheck: only %d processes took something", processes)
	}
	return takes
}

// load takes for as long as is planned.
func (p *Plan) load(ctx context.Context, take func(context.Context, int64) (bool, error), logs string) error {
	var wg sync.WaitGroup
	end := time.Now().Add(p.For)
	errs := make(chan error, p.Goroutines)
	for i := range p.Goroutines {
		wg.Go(func() {
			log, err := newLog(logs, i, p.Killed > 0)
			for err == nil && time.Now().Before(end) {
				err = log.take(1+rand.Int64N(p.Units), func(n int64) (bool, error) { return take(ctx, n) })
			}
			errs <- errors.Join(err, log.close())
		})
	}
	wg.Wait()
	for range p.Goroutines {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// serve is a child's part. It writes to the pipe that it got as its fourth file.
func (p *Plan) serve(t *testing.T, addr string) {
	pipe := os.NewFile(3, "ready")
	taker := p.Taker(addr)
	must(t, pipe.Close())
	_, _ = os.Stdin.Read(make([]byte, 1))
	must(t, p.load(t.Context(), taker, os.Getenv(logVariable)))
	t.SkipNow() // the rest is the parent's
}

// child is another process, as its parent sees it.
type child struct {
	cmd     *exec.Cmd
	out     bytes.Buffer // read when it has ended
	release func()       // lets it begin
	pipe    *os.File     // ends when it is ready
}

// begin starts the test's binary with this test alone. The process ends with the test.
func begin(t *testing.T, addr, logs string) *child {
	t.Helper()
	bin, err := os.Executable()
	must(t, err)
	pipe, theirs, err := os.Pipe()
	must(t, err)
	defer theirs.Close()
	name := strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^")
	c := &child{cmd: exec.CommandContext(t.Context(), bin, "-test.run=^"+name+"$", "-test.count=1"), pipe: pipe}
	c.cmd.Env = append(os.Environ(), addrVariable+"="+addr, logVariable+"="+logs)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	c.cmd.ExtraFiles = []*os.File{theirs}
	stdin, err := c.cmd.StdinPipe()
	must(t, err)
	c.release = func() { _ = stdin.Close() }
	must(t, c.cmd.Start())
	t.Cleanup(func() { _ = pipe.Close() })
	return c
}

// ready waits until the child has its taker, or is no more.
func (c *child) ready() {
	_, _ = c.pipe.Read(make([]byte, 1))
}

// kill gives the child no time for anything.
func (c *child) kill() { _ = c.cmd.Process.Kill() }

// end waits for the child's end.
func (c *child) end(t *testing.T, killed bool) {
	t.Helper()
	if err := c.cmd.Wait(); err != nil && !killed {
		t.Fatalf("ratecheck: another process: %v\n%s", err, &c.out)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("ratecheck: %v", err)
	}
}
