package torture

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// Plan describes the takes that processes send.
type Plan struct {
	// Server returns the address of the limiter's server, for Taker. Only the parent calls it.
	Server func() (addr string)
	// Taker returns a function that takes n units from the subject. Each process calls Taker once, and calls the
	// function concurrently.
	Taker func(addr string) func(ctx context.Context, n int64) (allowed bool, err error)

	Processes  int           // including the parent
	Killed     int           // how many of the other processes are killed while takes are sent
	Goroutines int           // the number of goroutines in each process
	Units      int64         // the maximum number of units of a take; the minimum is 1
	For        time.Duration // how long takes are sent
}

// Run carries out the plan and returns the takes of all processes. The other processes run the test up to this call,
// which does not return there. So a test calls Run only once.
func Run(t *testing.T, p Plan) []Take {
	t.Helper()
	testhost.ServeProcess(t, func(arg string, in io.Reader, out io.Writer) { p.serve(t, arg, in, out) })
	addr, logs := p.Server(), t.TempDir()
	taker := p.Taker(addr)
	others := make([]*testhost.Process, p.Processes-1)
	for i := range others {
		others[i] = testhost.StartProcess(t, addr+separator+logs)
	}
	for _, o := range others {
		_, _ = o.Out.Read(make([]byte, 1)) // waits until the process is ready or has ended
	}
	for i, o := range others {
		_ = o.In.Close()
		if i < p.Killed {
			// The processes are killed at different times.
			kill := time.AfterFunc(p.For*time.Duration(i+1)/time.Duration(p.Killed+1), o.Kill)
			t.Cleanup(func() { kill.Stop() })
		}
	}
	must(t, p.sendTakes(t.Context(), taker, logs))
	for i, o := range others {
		if i < p.Killed {
			o.Kill()
		} else {
			o.End(t)
		}
	}
	takes, processes, err := readLogs(logs)
	must(t, err)
	if processes < p.Processes {
		t.Fatalf("torture: only %d processes have logged takes", processes)
	}
	return takes
}

// separator separates the address from the folder of the logs in the argument of a process.
const separator = "|"

// serve runs the plan in another process. It writes a byte when it is ready, and begins when in ends.
func (p *Plan) serve(t *testing.T, arg string, in io.Reader, out io.Writer) {
	addr, logs, _ := strings.Cut(arg, separator)
	taker := p.Taker(addr)
	_, err := out.Write([]byte{0})
	must(t, err)
	_, _ = io.Copy(io.Discard, in)
	must(t, p.sendTakes(t.Context(), taker, logs))
}

// sendTakes sends takes for the planned time.
func (p *Plan) sendTakes(ctx context.Context, take func(context.Context, int64) (bool, error), logs string) error {
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("torture: %v", err)
	}
}
