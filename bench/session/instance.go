package session

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/redisinfo"
	"github.com/lazyreq/lazyreq/bench/rig"
)

// instance is a contender in a case.
type instance struct {
	handler http.Handler
	close   func() error
	load    load
	length  time.Duration
	redis   *redis.Client // for INFO
	next    atomic.Int64
	cookies [visitors]string
}

func openInstance(c Contender, addr string, client *redis.Client, l load, length time.Duration) (*instance, error) {
	handler, closer, err := c.Open(addr)
	if err != nil {
		return nil, err
	}
	return &instance{handler: handler, close: closer, load: l, length: length, redis: client}, nil
}

// Close implements [harness.Instance].
func (in *instance) Close() error { return in.close() }

// Round implements [harness.Instance].
func (in *instance) Round(ctx context.Context) (map[string]float64, error) {
	if err := in.prepare(ctx); err != nil {
		return nil, err
	}
	before, err := in.usage(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	requests, err := in.run(ctx)
	seconds := time.Since(began).Seconds()
	if err != nil {
		return nil, err
	}
	after, err := in.usage(ctx)
	if err != nil {
		return nil, err
	}
	n := float64(requests)
	return map[string]float64{
		"redis commands per request": float64(commandsSent(before.redis, after.redis)) / n,
		"throughput":                 n / seconds,
		"redis cpu per request":      (after.redis.CPU - before.redis.CPU).Seconds() * 1e6 / n,
		"server cpu per request":     (after.server - before.server).Seconds() * 1e6 / n,
	}, nil
}

// prepare empties Redis and logs every visitor in.
func (in *instance) prepare(ctx context.Context) error {
	if err := in.redis.FlushAll(ctx).Err(); err != nil {
		return err
	}
	for i := range visitors {
		w, err := in.ask(ctx, "POST", fmt.Sprint("/login?", visitorName(i)), "")
		if err != nil {
			return err
		}
		cookies := (&http.Response{Header: w.header}).Cookies()
		if len(cookies) != 1 {
			return fmt.Errorf("%w: %d cookies after the login", harness.ErrWrong, len(cookies))
		}
		in.cookies[i] = cookies[0].Name + "=" + cookies[0].Value
	}
	return nil
}

func visitorName(i int) string { return fmt.Sprintf("visitor-%03d", i) }

// run sends requests for the length of a round, and returns how many.
func (in *instance) run(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var over atomic.Bool
	defer time.AfterFunc(in.length, func() { over.Store(true) }).Stop()
	var requests atomic.Int64
	var callers sync.WaitGroup
	for range inFlight {
		callers.Go(func() {
			done := int64(0)
			for ; !over.Load() && ctx.Err() == nil; done++ {
				if err := in.request(ctx, int(in.next.Add(1))); err != nil {
					cancel(err)
				}
			}
			requests.Add(done)
		})
	}
	callers.Wait()
	return requests.Load(), context.Cause(ctx)
}

// request sends the request number n. The visitors take turns, so that each of them sends
// every kind.
func (in *instance) request(ctx context.Context, n int) error {
	visitor := (n + n/visitors) % visitors
	method, path, want := "GET", "/light", "light"
	switch turn := n % 10; {
	case turn < in.load.read:
		path, want = "/me", visitorName(visitor)
	case turn < in.load.read+in.load.write:
		method, path, want = "POST", "/visit", ""
	}
	w, err := in.ask(ctx, method, path, in.cookies[visitor])
	if err != nil {
		return err
	}
	if got := w.body.String(); got != want {
		return fmt.Errorf("%w: %s responds %q, want %q", harness.ErrWrong, path, got, want)
	}
	return nil
}

func (in *instance) ask(ctx context.Context, method, target, cookie string) (*response, error) {
	r, err := http.NewRequestWithContext(ctx, method, target, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = "192.0.2.1:1234"
	if cookie != "" {
		r.Header["Cookie"] = []string{cookie}
	}
	w := &response{header: http.Header{}}
	in.handler.ServeHTTP(w, r)
	if w.status != 0 && w.status != http.StatusOK {
		return nil, fmt.Errorf("%s %s: status %d: %s", method, target, w.status, w.body.String())
	}
	return w, nil
}

// response is an http.ResponseWriter without a connection.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *response) Header() http.Header         { return w.header }
func (w *response) WriteHeader(status int)      { w.status = status }
func (w *response) Write(p []byte) (int, error) { return w.body.Write(p) }

// usage is what was used up so far.
type usage struct {
	redis  redisinfo.Info
	server time.Duration // of processors
}

func (in *instance) usage(ctx context.Context) (usage, error) {
	cpu := rig.ProcessorTime()
	info, err := redisinfo.Read(ctx, in.redis)
	return usage{info, cpu}, err
}

// commandsSent returns how many commands clients have sent. A contender that sends scripts sends
// nothing else here: the scripts ran all other commands.
func commandsSent(before, after redisinfo.Info) int {
	commands, scripts := 0, 0
	for name, n := range after.Calls {
		n -= before.Calls[name]
		switch {
		case name == "info" || name == "flushall":
		case strings.HasPrefix(name, "eval"):
			scripts += n
		default:
			commands += n
		}
	}
	if scripts > 0 {
		return scripts
	}
	return commands
}
