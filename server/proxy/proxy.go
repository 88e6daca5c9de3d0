package proxy

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a [Proxy] has beside its configuration. The zero value is usable.
type Options struct {
	// Logger gets what goes wrong. Default: [slog.Default].
	Logger *slog.Logger
}

// Proxy passes requests on to upstream servers, as many as its limits allow. It is an
// [http.Handler], and all methods may be called concurrently. Make it with [New].
type Proxy struct {
	log       *slog.Logger
	pseudonym string
	via       []string // of a request by HTTP/1.1 that has been nowhere else; it doesn't change
	stores    *stores
	beyond    *beyond
	metrics   *counters
	stopping  atomic.Bool // clients should go elsewhere
	closed    atomic.Bool
	loops     seldom
	now       func() time.Time

	current atomic.Pointer[generation]
	reloads sync.Mutex // one at a time
}

// New returns a proxy. An error names the fields that are wrong.
func New(c Config, o Options) (*Proxy, error) { return newProxy(c, o, nil) }

// newProxy returns a proxy whose time is told by clock, nil for the real one.
func newProxy(c Config, o Options, clock func() time.Time) (*Proxy, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	p := &Proxy{
		log:       o.Logger,
		pseudonym: newPseudonym(),
		stores:    &stores{log: o.Logger, now: clock},
		beyond:    newBeyond(),
		now:       time.Now,
	}
	if clock != nil {
		p.now = clock
	}
	p.via = []string{"1.1 " + p.pseudonym}
	p.metrics = newCounters(p)
	g, err := newGeneration(p, c)
	if err != nil {
		return nil, err
	}
	p.current.Store(g)
	return p, p.stores.keep(g.store)
}

// Reload changes the configuration. Requests that are under way end by the old one, and
// counters stay what they are as long as the store is the same. After an error, which
// names the fields that are wrong, everything is as it was.
func (p *Proxy) Reload(c Config) error {
	return p.ReloadFrom(func() (Config, error) { return c, nil })
}

// ReloadFrom is Reload of what load returns. Its error is one of the reload, and counted.
func (p *Proxy) ReloadFrom(load func() (Config, error)) error {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	if p.closed.Load() {
		return errClosed
	}
	c, err := load()
	var g *generation
	if err == nil {
		g, err = newGeneration(p, c)
	}
	p.metrics.reloaded(err == nil)
	if err != nil {
		return err
	}
	had := p.current.Swap(g)
	err = p.stores.keep(g.store)
	had.retire()
	return err
}

var errClosed = errors.New("proxy: closed")

// upstream returns the one that the current configuration has by that name, nil if none.
func (p *Proxy) upstream(name string) *upstream {
	if g := p.current.Load(); g != nil {
		return g.upstreams[name]
	}
	return nil
}

// Check returns what is wrong with a configuration.
func Check(c Config) error {
	p, err := New(c, Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return p.Close()
}

// Close has requests that come from now on answered 503, and lets go of connections to
// upstreams and to Redis: at once, or after the last request that is under way.
func (p *Proxy) Close() error {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	if p.closed.Swap(true) {
		return nil
	}
	p.current.Load().retire()
	return p.stores.keep(nil)
}

// enter returns the configuration for a request, which has to leave it; nil once the proxy
// is closed.
func (p *Proxy) enter() *generation {
	for !p.closed.Load() {
		if g := p.current.Load(); g.enter() {
			return g
		}
	}
	return nil
}

// ServeHTTP answers one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer p.metrics.end(p.metrics.begin())
	g := p.enter()
	if g == nil {
		http.Error(w, "the proxy is closed", http.StatusServiceUnavailable)
		return
	}
	defer g.leave()
	out := newWriter(w, http.NewResponseController(w), r, g.stall)
	out.last = &p.stopping
	defer out.finish()
	w = out
	if h := named(r.Header, g.underscores); out.body != nil || len(h) < len(r.Header) {
		with := *r
		with.Header = h
		if out.body != nil {
			with.Body = out.body
		}
		r = &with
	}
	if key, ok := g.status.asks(r); ok {
		g.serveStatus(w, r, key)
		return
	}
	g.handler.ServeHTTP(w, r)
}

// Admin answers /healthz, which is 200 until [Server.Shutdown] and 503 then, and /metrics.
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
