package proxy

import (
	"log"
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
	quiet     *log.Logger // of net/http/httputil
	pseudonym string
	stores    *stores
	beyond    *beyond
	metrics   *counters
	stopping  atomic.Bool // clients should go elsewhere
	closed    atomic.Bool
	now       func() time.Time

	current atomic.Pointer[generation]
	reloads sync.Mutex // one at a time
}

// New returns a proxy. An error names the fields that are wrong.
func New(c Config, o Options) (*Proxy, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	p := &Proxy{
		log:       o.Logger,
		quiet:     slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		pseudonym: newPseudonym(),
		stores:    &stores{log: o.Logger},
		beyond:    newBeyond(),
		metrics:   newCounters(),
		now:       time.Now,
	}
	g, err := newGeneration(p, c)
	if err != nil {
		p.stores.close()
		return nil, err
	}
	p.current.Store(g)
	return p, nil
}

// Reload changes the configuration. Requests that are under way end by the old one, and
// counters stay what they are as long as the store is the same. After an error, which
// names the fields that are wrong, everything is as it was.
func (p *Proxy) Reload(c Config) error {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	g, err := newGeneration(p, c)
	p.metrics.reloaded(err == nil)
	if err != nil {
		return err
	}
	p.current.Swap(g).retire()
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

// Close lets go of connections to upstreams and to Redis that are idle. Requests that are
// under way go on; there should be none.
func (p *Proxy) Close() error {
	p.closed.Store(true)
	p.current.Load().retire()
	return p.stores.close()
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
	g := p.enter()
	if g == nil {
		http.Error(w, "the proxy is closed", http.StatusServiceUnavailable)
		return
	}
	defer g.leave()
	if key, ok := g.status.asks(r); ok {
		g.serveStatus(w, r, key)
		return
	}
	g.handler.ServeHTTP(w, r)
}

// Admin answers /healthz, which is 200 until [Proxy.Shutdown] or the end, and /metrics.
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

// buffers are what bodies are copied with.
var buffers = &bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}

type bufferPool struct{ pool sync.Pool }

// Get is for httputil.ReverseProxy.
func (b *bufferPool) Get() []byte { return b.pool.Get().(*[32 << 10]byte)[:] }

// Put is for httputil.ReverseProxy.
func (b *bufferPool) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }
