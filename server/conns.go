package server

import (
	"net"
	"sync"
)

// connSet holds the open raw connections of a server and their listeners.
type connSet struct {
	mu      sync.Mutex
	closing bool
	open    map[closer]struct{}
	running sync.WaitGroup // counts connections
}

// closer is a *Conn or a *connListener.
type closer interface {
	drain() // stops reading or accepting
	cut()   // closes it at once
}

// connListener is a listener of raw connections. A pointer can be the key of a map, unlike some listeners.
type connListener struct{ net.Listener }

func (l *connListener) drain() { _ = l.Close() }
func (l *connListener) cut()   { _ = l.Close() }

// add adds c, unless the server is closing.
func (s *connSet) add(c closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	if s.open == nil {
		s.open = map[closer]struct{}{}
	}
	s.open[c] = struct{}{}
	if _, ok := c.(*Conn); ok {
		s.running.Add(1)
	}
	return true
}

// remove removes c, which was added.
func (s *connSet) remove(c closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if _, ok := c.(*Conn); ok {
		s.running.Done()
	}
}

func (s *connSet) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// close lets nothing be added any more, and calls end for everything that is open.
func (s *connSet) close(end func(closer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for c := range s.open {
		end(c)
	}
}
