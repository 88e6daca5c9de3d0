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

// Server serves with an [http.Server]. Its Shutdown also serves requests on connections that are idle, new or not
// accepted yet. The Shutdown of net/http drops these requests.
type Server struct {
	// Window is how long Shutdown keeps a connection without a request. [New] sets it to one second.
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

// New returns a server that serves with s. It sets the ConnState of s.
func New(s *http.Server) *Server {
	g := &Server{Window: time.Second, http: s, listeners: map[*listener]struct{}{}}
	s.ConnState = g.observe
	return g
}

// Ending reports whether Shutdown accepts no more connections. From then on, each response must have the header
// "Connection: close". Over HTTP/2, net/http sends a GOAWAY instead.
func (s *Server) Ending() bool { return s.ending.Load() }

// observe keeps track of connections.
func (s *Server) observe(c net.Conn, state http.ConnState) {
	if !reflect.ValueOf(c).Comparable() {
		return // it cannot be a key of a map; net/http's Shutdown waits for it
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

// Serve serves the clients of l until Shutdown, and then returns [http.ErrServerClosed]. base is l itself or the
// listener that l wraps.
func (s *Server) Serve(l, base net.Listener) error {
	tracked := newListener(l, base)
	defer tracked.end()
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return http.ErrServerClosed
	}
	s.listeners[tracked] = struct{}{}
	s.mu.Unlock()

	err := s.http.Serve(tracked)

	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, tracked)
	if s.stopping {
		return http.ErrServerClosed
	}
	return err
}

// Shutdown serves the connections that wait to be accepted, and accepts no others. It waits until all connections are
// closed, and closes connections that have had no request for the window. If ctx ends first, it closes idle connections
// and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, l := range s.stop() {
		select {
		case <-l.ended:
		case <-ctx.Done():
		}
	}
	s.ending.Store(true) // earlier, a client that is told to close would connect again
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

// closeIdle closes connections that have been idle for s.Window. It reports whether there are connections, including
// those that it closes.
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
			c.idle = now.Add(time.Hour)                // so that it is closed only once
			go func() { _ = key.(net.Conn).Close() }() // TLS may wait for the client
		}
		return true
	})
	return left
}

// Close closes all listeners and connections.
func (s *Server) Close() error { return s.http.Close() }
