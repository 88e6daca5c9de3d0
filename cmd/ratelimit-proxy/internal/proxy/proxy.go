package proxy

import (
	"errors"
	"log"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/graceful"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// Options are the options of [New]. The zero value is usable.
type Options struct {
	// Logger gets failures and reloads. Default: [slog.Default].
	Logger *slog.Logger
}

// Proxy forwards requests to upstream servers as far as the limits of its configuration allow.
// It is an [http.Handler] and safe for concurrent use.
type Proxy struct {
	log       *slog.Logger
	debugLog  *log.Logger // for net/http
	pseudonym string
	via       string // "1.1 " and the pseudonym
	denials   *denialStreaks
	metrics   *metricSet
	stopping  atomic.Bool // /healthz is 503
	closed    atomic.Bool
	loops     throttledLog
	clock     func() time.Time // nil for the real time

	current atomic.Pointer[generation]

	reloads  sync.Mutex                   // held by Reload and Close
	policies map[string]*ratelimit.Policy // of all rules so far, by name; guarded by reloads
}

// New returns a proxy. It returns an error that names the fields of c that are not valid; see
// [config.FieldError].
func New(c config.Config, o Options) (*Proxy, error) { return newProxy(c, o, nil) }

func newProxy(c config.Config, o Options, clock func() time.Time) (*Proxy, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	p := &Proxy{
		log:       o.Logger,
		debugLog:  slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		pseudonym: newPseudonym(),
		denials:   newDenialStreaks(),
		policies:  map[string]*ratelimit.Policy{},
		clock:     clock,
	}
	p.via = "1.1 " + p.pseudonym
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

// Reload replaces the configuration by the one that load returns. Requests in flight end by the
// old one, and the counters stay as long as the store is the same. After an error, by load or
// about the configuration, the old configuration stays.
func (p *Proxy) Reload(load func() (config.Config, error)) error {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	if p.closed.Load() {
		return errClosed
	}
	before := p.current.Load()
	c, err := load()
	var g *generation
	if err == nil {
		g, err = newGeneration(p, c, before)
	}
	p.metrics.countReload(err == nil)
	if err != nil {
		return err
	}
	p.current.Store(g)
	before.retire()
	return nil
}

var errClosed = errors.New("proxy: closed")

// Check returns the error that [New] would return.
func Check(c config.Config) error {
	p, err := New(c, Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return p.Close()
}

// Close answers new requests with 503. It closes the connections to upstreams and to Redis at
// once, or after the last request in flight. It always returns nil.
func (p *Proxy) Close() error {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	if !p.closed.Swap(true) {
		p.current.Load().retire()
	}
	return nil
}

// policyFor returns the policy of the rules with a name. Its fields are those of the last rule that was
// made: generations have copies. A new policy would add properties to every later generation.
func (p *Proxy) policyFor(rule string) *ratelimit.Policy {
	if p.policies[rule] == nil {
		p.policies[rule] = &ratelimit.Policy{Name: rule}
	}
	return p.policies[rule]
}

// acquireGeneration returns the configuration for a request, which must call release, or nil if the proxy
// is closed.
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

// serve answers one request of a server, nil for a server that isn't ours.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, from *graceful.Server) {
	began := time.Now()
	p.metrics.inFlight.Add(1)
	defer func() {
		p.metrics.inFlight.Add(-1)
		p.metrics.requests.observe(time.Since(began))
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

// Admin returns the handler of /healthz, which answers 200, and 503 from [Server.Shutdown] on,
// and of /metrics.
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
