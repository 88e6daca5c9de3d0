package prefetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/redisinfo"
	"github.com/lazyreq/lazyreq/bench/rig"
	"github.com/lazyreq/lazyreq/server"
)

// instance is a server with all routes, of which one is measured, without a network to the
// client.
type instance struct {
	handler *server.Server
	client  *redis.Client // the server's
	redis   *redis.Client // for INFO
	path    string
	cookie  *http.Cookie
	length  time.Duration
}

func open(ctx context.Context, addr string, info *redis.Client, path string, length time.Duration) (*instance, error) {
	srv, client, err := newServer(addr, slices.Concat(routes, requiring))
	if err != nil {
		return nil, err
	}
	in := &instance{handler: srv, client: client, redis: info, path: path, length: length}
	res, _ := in.ask(ctx, http.MethodPost, "/login")
	if cookies := res.Cookies(); len(cookies) == 1 {
		in.cookie = cookies[0]
		return in, nil
	}
	return nil, errors.Join(fmt.Errorf("%w: no cookie after the login", harness.ErrWrong), in.Close())
}

// Close implements [harness.Instance].
func (in *instance) Close() error {
	return errors.Join(in.handler.Close(), in.client.Close())
}

func (in *instance) ask(ctx context.Context, method, path string) (*http.Response, string) {
	r := httptest.NewRequestWithContext(ctx, method, path, http.NoBody)
	if in.cookie != nil {
		r.AddCookie(in.cookie)
	}
	w := httptest.NewRecorder()
	in.handler.ServeHTTP(w, r)
	return w.Result(), w.Body.String()
}

// Round implements [harness.Instance].
func (in *instance) Round(ctx context.Context) (map[string]float64, error) {
	before, err := redisinfo.Read(ctx, in.redis)
	if err != nil {
		return nil, err
	}
	cpu := rig.ProcessorTime()
	took, err := in.run(ctx)
	cpu = rig.ProcessorTime() - cpu
	if err != nil {
		return nil, err
	}
	after, err := redisinfo.Read(ctx, in.redis)
	if err != nil {
		return nil, err
	}
	slices.Sort(took)
	n := float64(len(took))
	return map[string]float64{
		"p50":                        took[len(took)/2].Seconds() * 1e3,
		"p99":                        took[len(took)*99/100].Seconds() * 1e3,
		"redis commands per request": float64(commands(after)-commands(before)) / n,
		"cpu per request":            cpu.Seconds() * 1e6 / n,
	}, nil
}

// commands returns how many commands clients have sent: the server sends scripts and EXISTS.
func commands(info redisinfo.Info) (n int) {
	for name, calls := range info.Calls {
		if strings.HasPrefix(name, "eval") || name == "exists" {
			n += calls
		}
	}
	return n
}

// run sends requests for the length of a round, and returns how long each took.
func (in *instance) run(ctx context.Context) ([]time.Duration, error) {
	end := time.Now().Add(in.length)
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var clients sync.WaitGroup
	for range inFlight {
		clients.Go(func() {
			var own []time.Duration
			var err error
			for began := time.Now(); began.Before(end) && err == nil; began = time.Now() {
				res, body := in.ask(ctx, http.MethodGet, in.path)
				own = append(own, time.Since(began))
				if res.StatusCode != http.StatusOK || body != all {
					err = fmt.Errorf("%w: status %d, %q", harness.ErrWrong, res.StatusCode, body)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took, failed = append(took, own...), errors.Join(failed, err)
		})
	}
	clients.Wait()
	return took, failed
}

// program is a server whose light route is measured.
type program struct {
	name   string
	routes []route
}

var programs = []program{
	{"lazyreq", routes[:1]},
	{"no prefetch", routes[1:2]},
}

// light is the instance of a program.
type light struct {
	harness.Instance
	client *redis.Client
}

func (p program) open(addr string, length time.Duration) (harness.Instance, error) {
	srv, client, err := newServer(addr, p.routes)
	if err != nil {
		return nil, err
	}
	r := httptest.NewRequest(http.MethodGet, "/light", http.NoBody)
	w := &discard{header: http.Header{}}
	timed, err := harness.NewTimed(func(n int) error {
		for range n {
			srv.ServeHTTP(w, r)
		}
		if w.status != http.StatusNoContent {
			return fmt.Errorf("%w: status %d", harness.ErrWrong, w.status)
		}
		return nil
	}, length)
	return light{timed, client}, err
}

// Close implements [harness.Instance].
func (l light) Close() error { return errors.Join(l.Instance.Close(), l.client.Close()) }

// discard is an http.ResponseWriter that keeps the status.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
