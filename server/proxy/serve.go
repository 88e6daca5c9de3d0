package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/lazyreq/lazyreq/server"
)

// Server accepts connections for a [Proxy]. Make it with [Proxy.Server].
type Server struct {
	p     *Proxy
	http  *http.Server
	abort context.CancelCauseFunc

	silent   silent
	window   time.Duration  // at the end, see drain
	open     atomic.Int64   // connections, without those of upgrades
	upgrades sync.WaitGroup // requests that want one: net/http forgets those connections
}

// errStopped is the cause of requests that Shutdown did not wait for.
var errStopped = errors.New("proxy: stopped")

// Server returns a server with the bounds of a configuration.
func (p *Proxy) Server(l Limits) *Server {
	s := p.newServer(l)
	s.http.Handler = http.HandlerFunc(s.serve)
	return s
}

// AdminServer returns a server of [Proxy.Admin], for an address of its own.
func (p *Proxy) AdminServer() *Server {
	s := p.newServer(Limits{})
	s.http.Handler = p.Admin()
	return s
}

func (p *Proxy) newServer(l Limits) *Server {
	base, abort := context.WithCancelCause(context.Background())
	s := &Server{p: p, abort: abort, window: time.Second}
	s.http = &http.Server{
		ReadHeaderTimeout: cmp.Or(l.Header, 10*time.Second),
		WriteTimeout:      2 * cmp.Or(l.Stall, time.Minute), // of what isn't an upstream's (see writer), after a body nobody reads
		IdleTimeout:       cmp.Or(l.Idle, 2*time.Minute),
		MaxHeaderBytes:    int(cmp.Or(l.HeaderBytes, 64<<10)),
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          newServerLog(p.log),
		ConnState: func(c net.Conn, state http.ConnState) {
			s.count(state)
			s.silent.observe(c, state)
		},
	}
	s.http.RegisterOnShutdown(s.silent.stop)
	return s
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if len(r.Header["Upgrade"]) > 0 {
		s.upgrades.Add(1)
		defer s.upgrades.Done()
	}
	s.p.ServeHTTP(w, r)
}

// Serve serves clients of l, which [Listener.Open] has made, until Shutdown; then it
// returns [http.ErrServerClosed].
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(l) }

// count keeps count of the connections.
func (s *Server) count(state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
	case http.StateHijacked, http.StateClosed:
		s.open.Add(-1)
	}
}

// drain waits until all connections are closed, for the window at most. Until then, those
// that are idle and new ones get an answer that announces the connection's end: what their
// clients are about to send must not be lost.
func (s *Server) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.window)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.open.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Shutdown announces to clients that their connections end, for a second at most. Then it
// stops to accept connections, closes those without a request, and waits for the requests that
// are under way, and for websockets, until their clients or upstreams end them. When ctx
// ends first, it cuts all off and returns [context.Cause] of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.p.stopping.Store(true)
	s.drain(ctx)
	err := s.http.Shutdown(ctx)
	if err == nil {
		err = s.upgradesEnd(ctx)
	}
	s.abort(errStopped)
	if err == nil {
		return nil
	}
	_ = s.http.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Close cuts everything off at once.
func (s *Server) Close() error {
	s.abort(errStopped)
	return s.http.Close()
}

// upgradesEnd waits for websockets. No more of them begin.
func (s *Server) upgradesEnd(ctx context.Context) error {
	over := make(chan struct{})
	go func() {
		s.upgrades.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check says what is wrong with a listener, but for its files.
func (l Listener) check(field string, f *faults) {
	checkAddress(field+".address", l.Address, f)
	if (l.Cert == "") != (l.Key == "") {
		f.addf(field, "has a cert or a key alone: they belong together")
	}
}

func checkAddress(field, address string, f *faults) {
	if _, port, err := net.SplitHostPort(address); err != nil || port != "0" && !validPort(port) {
		f.addf(field, "%q is no address to listen on, want one such as 127.0.0.1:8080", address)
	}
}

// checkTaken says that an address is another field's, too. On port 0 each has a port of its own.
func checkTaken(taken map[string]string, field, address string, f *faults) {
	if other := taken[address]; other != "" && !strings.HasSuffix(address, ":0") {
		f.addf(field, "%q is also the address of %s", address, other)
	}
	taken[address] = field
}

// validPort tells whether a port can be connected to, by its number or its name.
func validPort(port string) bool {
	n, err := net.LookupPort("tcp", port)
	return err == nil && n > 0
}

// checkFiles says which certificates can't be used.
func checkFiles(listeners []Listener, f *faults) {
	for i, l := range listeners {
		if l.Cert == "" || l.Key == "" {
			continue
		}
		if _, err := tls.LoadX509KeyPair(l.Cert, l.Key); err != nil {
			f.addf(fmt.Sprintf("listen[%d].cert", i), "%s, key %s: %w", l.Cert, l.Key, err)
		}
	}
}

// Open listens, and lets TLS and the PROXY protocol be spoken as the listener says.
func (l Listener) Open(log *slog.Logger) (net.Listener, error) {
	if (l.Cert == "") != (l.Key == "") {
		return nil, fmt.Errorf("listen %s: cert and key belong together", l.Address)
	}
	var conf *tls.Config
	if l.Cert != "" {
		get, err := server.Certificate(l.Cert, l.Key, log)
		if err != nil {
			return nil, err
		}
		conf = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: get}
	}
	out, err := net.Listen("tcp", l.Address)
	if err != nil {
		return nil, err
	}
	if len(l.ProxyProtocol) > 0 {
		out = &announcedListener{Listener: &proxyproto.Listener{
			Listener: out, ReadHeaderTimeout: 10 * time.Second, ConnPolicy: announced(prefixes(l.ProxyProtocol)),
		}, log: log, seldom: seldom{every: time.Minute}}
	}
	if conf != nil {
		out = tls.NewListener(out, conf)
	}
	return out, nil
}
