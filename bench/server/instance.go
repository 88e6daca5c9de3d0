package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/load"
)

const connections = 64

// instance is a stack that is running, and how it is asked in this case.
type instance struct {
	b      *bench
	p      *child.Process
	load   asked
	direct map[string]float64 // of a command's calls, the share that are not a script's; all if it is not there
}

// start starts a stack, logs in, and finds out which commands its scripts call.
func (b *bench) start(ctx context.Context, s stack, redisAddr string, percent int) (_ *instance, err error) {
	p, addr, err := child.StartRole(stackRole, task{s.name, redisAddr}, b.stack)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	i := &instance{b: b, p: p, load: asked{
		Options: load.Options{Addr: addr, Conns: connections, WarmUp: b.warmUp, Measure: b.measure},
		Percent: percent,
	}}
	if i.load.Cookie, err = login(ctx, s, addr); err != nil {
		return nil, err
	}
	return i, i.countCommands(ctx)
}

// login returns the session's cookie. Without sessions it is one of the same length,
// so that the requests are the same.
func login(ctx context.Context, s stack, addr string) (string, error) {
	if !s.sessions {
		return "session=0123456789012345678901.0123456789012345678901234567890123456789012", nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/login", nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	for _, c := range res.Cookies() {
		return c.Name + "=" + c.Value, nil
	}
	return "", fmt.Errorf("POST /login: %s without a cookie", res.Status)
}

// countCommands has both routes asked a few times, with the answers checked, while Redis tells
// what it gets from clients and what from scripts.
func (i *instance) countCommands(ctx context.Context) error {
	ask := func() error {
		for range 10 {
			for path, want := range map[string]page{"/light": lightPage, "/full?q=" + fullQuery: {user, fullQuery}} {
				if err := i.requestPage(ctx, path, want); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := ask(); err != nil { // loads the scripts
		return err
	}
	before, err := i.b.db.commandCounts(ctx)
	if err != nil {
		return err
	}
	sent, err := i.b.db.countCommandsDuring(ctx, ask)
	if err != nil {
		return err
	}
	after, err := i.b.db.commandCounts(ctx)
	if err != nil {
		return err
	}
	i.direct = map[string]float64{"echo": 0, "monitor": 0, "info": 0}
	for name, n := range after {
		if n -= before[name]; n > 0 && name != "echo" && name != "monitor" {
			i.direct[name] = float64(sent[name]) / float64(n)
		}
	}
	return nil
}

func (i *instance) requestPage(ctx context.Context, path string, want page) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.load.Addr+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Cookie", i.load.Cookie)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || string(body) != want.encoded() {
		return fmt.Errorf("%w: %s: %s %q, want %q", harness.ErrWrong, path, res.Status, body, want.encoded())
	}
	return nil
}

// Round sends the load once.
func (i *instance) Round(ctx context.Context) (map[string]float64, error) {
	calls, err := i.b.db.commandCounts(ctx)
	if err != nil {
		return nil, err
	}
	used, err := i.processorTime()
	if err != nil {
		return nil, err
	}
	res, err := i.send(ctx)
	if err != nil {
		return nil, err
	}
	usedAfter, err := i.processorTime()
	if err != nil {
		return nil, err
	}
	callsAfter, err := i.b.db.commandCounts(ctx)
	if err != nil {
		return nil, err
	}
	if res.Wrong != "" {
		return nil, fmt.Errorf("%w: %s", harness.ErrWrong, res.Wrong)
	}
	n := float64(res.Requests)
	return map[string]float64{
		throughput: res.Throughput,
		p50:        milliseconds(res.P50),
		p99:        milliseconds(res.P99),
		commands:   i.commandsSent(calls, callsAfter) / n,
		processor:  float64((usedAfter - used).Microseconds()) / n,
	}, nil
}

// send runs the load in a process of its own.
func (i *instance) send(ctx context.Context) (res load.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, i.load.WarmUp+i.load.Measure+20*time.Second)
	defer cancel()
	return res, child.Run(ctx, i.b.rest, loadRole, &i.load, &res)
}

// processorTime returns the processor time that the stack took so far.
func (i *instance) processorTime() (time.Duration, error) {
	line, err := i.p.Poll()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(line, 10, 64)
	return time.Duration(n) * time.Microsecond, err
}

// commandsSent returns how many commands clients have sent in between. A script counts as
// one, whatever it calls.
func (i *instance) commandsSent(before, after map[string]int) float64 {
	sum := 0.0
	for name, n := range after {
		share, ok := i.direct[name]
		if !ok {
			share = 1
		}
		sum += share * float64(n-before[name])
	}
	return sum
}

// Close ends the stack.
func (i *instance) Close() error { return i.p.Close() }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
