package server

import (
	"net"
	"sync"
)

// connSet holds a server's raw connections and their listeners.
type connSet struct {
	mu        sync.Mutex
	closing   bool
	listeners map[*net.Listener]struct{} // pointers, since not every listener can be a key
	conns     map[*Conn]struct{}
	empty     chan struct{} // made when closing; closed when no connection is left
}

// listen adds a listener, unless the server is closing.
func (s *connSet) listen(l *net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	if s.listeners == nil {
		s.listeners = map[*net.Listener]struct{}{}
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *connSet) unlisten(l *net.Listener) {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	_ = (*l).Close()
}

func (s *connSet) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// add adds a connection, unless the server is closing.
func (s *connSet) add(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	if s.conns == nil {
		s.conns = map[*Conn]struct{}{}
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *connSet) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if len(s.conns) == 0 && s.empty != nil {
		close(s.empty) // once: no connection is added after closing
	}
}

// drain closes the listeners and lets the connections finish their work. The
// channel is closed when none is left.
func (s *connSet) drain() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for l := range s.listeners {
		_ = (*l).Close()
	}
	for c := range s.conns {
		c.drain()
	}
	if s.empty == nil {
		s.empty = make(chan struct{})
		if len(s.conns) == 0 {
			close(s.empty)
		}
	}
	return s.empty
}

// close closes the listeners and the connections.
func (s *connSet) close() {
	s.drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.cut()
	}
}
