// Package proxy is a rate-limiting reverse proxy.
//
// [New] returns a [Proxy] for a configuration. [Proxy.Reload] replaces the configuration while the proxy serves requests.
// [Proxy.Server] serves it with timeouts, a graceful stop and the PROXY protocol.
//
// The rules of a request are its lazy properties. A request that no rule matches doesn't call the store, and all rules
// that match share one round trip to Redis.
//
// Only the configuration chooses the upstream: neither Host nor URL of a request can make the proxy connect elsewhere.
// Bodies are streamed in both directions. Websockets are forwarded, and other upgrades are refused.
package proxy

import (
	"crypto/rand"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/graceful"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// Proxy is an [http.Handler] that forwards requests if its limits allow them. It is safe for concurrent use.
type Proxy struct {
	log       *slog.Logger
	debugLog  *log.Logger // for net/http
	pseudonym string      // name of this proxy in Via headers
	denials   *denialStreaks
	metrics   *metricSet
	stopping  atomic.Bool // /healthz answers 503
	closed    atomic.Bool
	loops     throttledLog
	clock     func() time.Time // nil for the real time

	current atomic.Pointer[generation]

	reloads   sync.Mutex                   // held by Reload while it creates a generation, which may take long if files can't be read
	replacing sync.Mutex                   // held while the current generation is replaced or closed
	policies  map[string]*ratelimit.Policy // of all rules so far, by name; guarded by reloads
}

// New returns a proxy. Its error names the invalid fields of c; see [config.FieldError].
func New(c config.Config, log *slog.Logger) (*Proxy, error) { return newProxy(c, log, nil) }

func newProxy(c config.Config, log *slog.Logger, clock func() time.Time) (*Proxy, error) {
	p := &Proxy{
		log:       log,
		debugLog:  slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		pseudonym: "ratelimit-proxy-" + rand.Text()[:12],
		denials:   newDenialStreaks(),
		policies:  map[string]*ratelimit.Policy{},
		clock:     clock,
	}
	p.metrics = newMetricSet(p)
	g, err := newGeneration(p, c, nil)
	if err != nil {
		return nil, err
	}
	p.current.Store(g)
	return p, nil
}

func (p *Proxy) now() time.Time {
	if p.clock != nil {
		return p.clock()
	}
	return time.Now()
}

// Reload calls load and replaces the configuration with its result. Requests in flight keep the old configuration.
// Counters are kept if the settings of the store are unchanged. After an error, the old configuration stays in force.
func (p *Proxy) Reload(load func() (config.Config, error)) error {
	c, err := load()
	p.reloads.Lock()
	defer p.reloads.Unlock()
	before := p.acquireGeneration()
	if before == nil {
		return errClosed
	}
	defer before.release()
	var g *generation
	if err == nil {
		g, err = newGeneration(p, c, before)
	}
	p.metrics.counter("reloads_total", "ok", strconv.FormatBool(err == nil)).Inc()
	if err != nil {
		return err
	}
	p.replacing.Lock()
	defer p.replacing.Unlock()
	if p.closed.Load() {
		g.retire()
		return errClosed
	}
	p.current.Store(g)
	before.retire()
	return nil
}

var errClosed = errors.New("proxy: closed")

// Check checks a configuration. It returns the error that [New] would return.
func Check(c config.Config) error {
	p, err := New(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return p.Close()
}

// Close makes the proxy answer new requests with 503. After the last request in flight, the proxy closes its connections
// to upstreams and Redis. Close does not wait, and always returns nil.
func (p *Proxy) Close() error {
	p.replacing.Lock()
	defer p.replacing.Unlock()
	if !p.closed.Swap(true) {
		p.current.Load().retire()
	}
	return nil
}

// policyFor returns the policy for rules with this name. All generations share it, because each new policy would add
// properties to all later generations. The fields of the policy are those of the latest rule.
func (p *Proxy) policyFor(rule string) *ratelimit.Policy {
	if p.policies[rule] == nil {
		p.policies[rule] = &ratelimit.Policy{Name: rule}
	}
	return p.policies[rule]
}

// acquireGeneration returns the current generation, or nil if the proxy is closed. The caller must release the
// generation.
func (p *Proxy) acquireGeneration() *generation {
	for !p.closed.Load() {
		if g := p.current.Load(); g.acquire() {
			return g
		}
	}
	return nil
}

// ServeHTTP answers one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.serve(w, r, nil) }

// serve answers a request. from is nil if the request does not come from a [Server].
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, from *graceful.Server) {
	began := time.Now()
	p.metrics.inFlight.Add(1)
	defer func() {
		p.metrics.inFlight.Add(-1)
		p.metrics.requests.UpdateDuration(began)
	}()
	g := p.acquireGeneration()
	if g == nil {
		http.Error(w, "the proxy is closed", http.StatusServiceUnavailable)
		return
	}
	defer g.release()
	out := newResponseWriter(w, r, g.config.Timeouts.Stall)
	out.server = from
	defer out.prepareEnd()
	r = normalize(r, out.body, g.config.Headers.Underscores)
	if key, ok := g.statusKey(r); ok {
		g.serveStatus(out, r, key)
		return
	}
	g.handler.ServeHTTP(out, r)
}

// Admin returns the handler of /healthz and /metrics. After the beginning of [Server.Shutdown], /healthz answers 503.
func (p *Proxy) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if p.stopping.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		p.metrics.write(w)
	})
	return mux
}
