package proxy

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// silent keeps the connections that have not sent a request's header yet; TLS and the PROXY
// protocol come before that. Once it stops, net/http serves none of them any more, but waits
// for each to be five seconds old.
type silent struct {
	conns   sync.Map // net.Conn
	stopped atomic.Bool
}

// observe is an [http.Server]'s ConnState.
func (s *silent) observe(c net.Conn, state http.ConnState) {
	switch _, known := s.conns.Load(c); { // so that not each request of a connection writes
	case state == http.StateNew:
		s.conns.Store(c, nil)
		if s.stopped.Load() {
			_ = c.Close()
		}
	case known:
		s.conns.Delete(c)
	}
}

// stop closes them. The server has begun to stop.
func (s *silent) stop() {
	s.stopped.Store(true)
	s.conns.Range(func(c, _ any) bool {
		_ = c.(net.Conn).Close()
		return true
	})
}
