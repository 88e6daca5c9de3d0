// Package graceful stops an [http.Server] without losing requests.
package graceful

import (
	"context"
	"net"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves with an [http.Server]. The Shutdown of net/http drops requests that are on their way, on
// connections that wait to be accepted, are new or are idle. Shutdown of a Server serves them.
type Server struct {
	// Window is how long Shutdown keeps a connection without a request. [New] sets it to a second.
	Window time.Duration

	http   *http.Server
	conns  sync.Map // of *conn, by net.Conn
	ending atomic.Bool

	mu        sync.Mutex
	stopping  bool // Shutdown has begun
	listeners map[*listener]struct{}
}

// conn is an open connection.
type conn struct {
	active atomic.Bool // it has a request
	idle   time.Time   // when Shutdown first saw it without a request; zero if it has one
}

// New returns a server that serves with s, and sets its ConnState.
func New(s *http.Server) *Server {
	g := &Server{Window: time.Second, http: s, listeners: map[*listener]struct{}{}}
	s.ConnState = g.observe
	return g
}

// Ending reports whether each response must have the header "Connection: close", since Shutdown accepts no
// more connections. Over HTTP/2, net/http sends a GOAWAY in its place.
func (s *Server) Ending() bool { return s.ending.Load() }

// observe keeps account of connections.
func (s *Server) observe(c net.Conn, state http.ConnState) {
	if !reflect.ValueOf(c).Comparable() {
		return // it can't be a key; net/http's Shutdown waits for it
	}
	switch state {
	case http.StateNew:
		s.conns.Store(c, new(conn))
	case http.StateActive, http.StateIdle:
		if known, ok := s.conns.Load(c); ok {
			known.(*conn).active.Store(state == http.StateActive)
		}
	case http.StateHijacked, http.StateClosed:
		s.conns.Delete(c)
	}
}

// Serve serves the clients of l until Shutdown. It then returns [http.ErrServerClosed]. l is base, or is
// built on base.
func (s *Server) Serve(l, base net.Listener) error {
	tracked := newListener(l, base)
	defer tracked.end()
	if !s.add(tracked) {
		return http.ErrServerClosed
	}
	err := s.http.Serve(tracked)
	if s.remove(tracked) {
		return http.ErrServerClosed
	}
	return err
}

// add adds a listener, unless the server is stopping.
func (s *Server) add(l *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

// remove removes a listener and reports whether the server is stopping.
func (s *Server) remove(l *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
	return s.stopping
}

// Shutdown serves the connections that wait to be accepted, and accepts no more. It waits until all
// connections are closed, and closes those that have had no request for the window. When ctx ends first, it
// closes idle connections and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, l := range s.stop() {
		select {
		case <-l.ended:
		case <-ctx.Done():
		}
	}
	s.ending.Store(true) // a client that gets this earlier would connect again
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.closeIdle(time.Now()) && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return s.http.Shutdown(ctx)
}

// stop stops all listeners and returns them.
func (s *Server) stop() (all []*listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for l := range s.listeners {
		l.stop()
		all = append(all, l)
	}
	return all
}

// closeIdle closes the connections that have had no request for the window. It reports whether any
// connection is left.
func (s *Server) closeIdle(now time.Time) (left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns.Range(func(key, value any) bool {
		left = true
		switch c := value.(*conn); {
		case c.active.Load():
			c.idle = time.Time{}
		case c.idle.IsZero():
			c.idle = now
		case now.Sub(c.idle) >= s.Window:
			c.idle = now.Add(time.Hour)                // so that it is closed once
			go func() { _ = key.(net.Conn).Close() }() // TLS may wait for the client
		}
		return true
	})
	return left
}

// Close closes all listeners and connections.
func (s *Server) Close() error { return s.http.Close() }
