package ratecheck

import (
	"bytes"
	"context"
	"encoding/gob"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
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
	Goroutines int           // of each process
	Units      int64         // a take is of 1 to so many
	For        time.Duration // how long takes are sent
}

// variable holds a child's server address.
const variable = "LAZYREQ_RATECHECK"

// Run carries out the plan and returns the takes of all processes. The others run this
// test as far as this call, which does not return there, so a test calls it once, and
// does before it what both need.
func Run(t *testing.T, p Plan) []Take {
	t.Helper()
	if addr, child := os.LookupEnv(variable); child {
		p.serve(t, addr)
	}
	addr := p.Server()
	taker := p.Taker(addr)
	children := make([]*child, p.Processes-1)
	for i := range children {
		children[i] = begin(t, addr)
	}
	for _, c := range children {
		c.ready(t)
	}
	for _, c := range children {
		c.release()
	}
	takes := p.load(t.Context(), taker)
	for _, c := range children {
		takes = append(takes, c.end(t)...)
	}
	return takes
}

// load takes for as long as is planned.
func (p *Plan) load(ctx context.Context, take func(context.Context, int64) (bool, error)) []Take {
	var wg sync.WaitGroup
	end := time.Now().Add(p.For)
	logs := make([][]Take, p.Goroutines)
	for i := range logs {
		wg.Go(func() {
			for time.Now().Before(end) {
				k := Take{N: 1 + rand.Int64N(p.Units), Sent: time.Now().UnixMicro()}
				allowed, err := take(ctx, k.N)
				k.Received, k.Allowed, k.Failed = time.Now().UnixMicro(), allowed, err != nil
				logs[i] = append(logs[i], k)
			}
		})
	}
	wg.Wait()
	return slices.Concat(logs...)
}

// serve is a child's part. It writes to the pipe that it got as its fourth file.
func (p *Plan) serve(t *testing.T, addr string) {
	pipe := os.NewFile(3, "takes")
	defer pipe.Close()
	taker := p.Taker(addr)
	enc := gob.NewEncoder(pipe)
	must(t, enc.Encode(true)) // ready
	_, _ = os.Stdin.Read(make([]byte, 1))
	must(t, enc.Encode(p.load(t.Context(), taker)))
	t.SkipNow() // the rest is the parent's
}

// child is another process, as its parent sees it.
type child struct {
	cmd     *exec.Cmd
	out     bytes.Buffer // read when it has ended
	release func()       // lets it begin
	pipe    *os.File
	dec     *gob.Decoder
}

// begin starts the test's binary with this test alone. The process ends with the test.
func begin(t *testing.T, addr string) *child {
	t.Helper()
	bin, err := os.Executable()
	must(t, err)
	pipe, theirs, err := os.Pipe()
	must(t, err)
	defer theirs.Close()
	name := strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^")
	c := &child{cmd: exec.CommandContext(t.Context(), bin, "-test.run=^"+name+"$", "-test.count=1"), pipe: pipe, dec: gob.NewDecoder(pipe)}
	c.cmd.Env = append(os.Environ(), variable+"="+addr)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	c.cmd.ExtraFiles = []*os.File{theirs}
	stdin, err := c.cmd.StdinPipe()
	must(t, err)
	c.release = func() { _ = stdin.Close() }
	must(t, c.cmd.Start())
	t.Cleanup(func() { _ = pipe.Close() })
	return c
}

// ready waits until the child has its taker.
func (c *child) ready(t *testing.T) {
	t.Helper()
	var ready bool
	if err := c.dec.Decode(&ready); err != nil {
		c.fail(t, err)
	}
}

// end waits for the child's takes and its end.
func (c *child) end(t *testing.T) (takes []Take) {
	t.Helper()
	if err := c.dec.Decode(&takes); err != nil {
		c.fail(t, err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("ratecheck: another process: %v\n%s", err, &c.out)
	}
	if len(takes) == 0 {
		t.Fatalf("ratecheck: another process took nothing\n%s", &c.out)
	}
	return takes
}

func (c *child) fail(t *testing.T, err error) {
	t.Helper()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	t.Fatalf("ratecheck: another process: %v\n%s", err, &c.out)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("ratecheck: %v", err)
	}
}
