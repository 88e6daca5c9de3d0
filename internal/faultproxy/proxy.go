// Package faultproxy simulates network faults in front of a TCP server: latency, connections that are closed, reset or
// silent, and replies that end in the middle. It is for tests.
//
// A [Proxy] does not know the protocol. Requests are the bytes from client to server, and replies the other bytes.
package faultproxy

import (
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// Proxy forwards connections to one address, with faults. A fault applies to open and new connections until
// [Proxy.Restore]. The methods of a Proxy are safe for concurrent use.
type Proxy struct {
	// Addr is its address on the loopback interface.
	Addr string

	target string
	port   *testhost.Port
	work   sync.WaitGroup

	mu      sync.Mutex
	l       *net.TCPListener // nil while connections are refused
	links   map[*link]struct{}
	delay   [2]time.Duration
	stalled bool
	quota   int           // the number of reply bytes that pass before ending is called
	ending  func()        // nil if replies do not end
	changed chan struct{} // closed and replaced when stalled ends
}

// New starts a proxy in front of the TCP server at target, which need not run yet. The proxy ends with the test.
func New(tb testing.TB, target string) *Proxy {
	tb.Helper()
	port, err := testhost.ReservePort()
	if err != nil {
		tb.Fatalf("faultproxy: %v", err)
	}
	p := &Proxy{
		Addr: port.Addr(), target: target, port: port,
		links: map[*link]struct{}{}, changed: make(chan struct{}),
	}
	if err := p.listen(); err != nil {
		tb.Fatalf("faultproxy: %v", err)
	}
	tb.Cleanup(p.close)
	return p
}

// NewClient returns a client that connects to the server through a new proxy. Both end with the test.
func NewClient(tb testing.TB, server *testhost.Redis) (*redis.Client, *Proxy) {
	tb.Helper()
	p := New(tb, server.Addr)
	return server.Client(func(o *redis.Options) { o.Addr = p.Addr }), p
}

// Delay delays requests and replies. Bytes stay in order.
func (p *Proxy) Delay(request, reply time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = [2]time.Duration{request, reply}
}

// Cut closes all connections and refuses new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.l != nil {
		stopListening(p.l)
		p.l = nil
	}
	p.endLinks((*link).close)
}

// CutAfter calls Cut as soon as n more bytes of replies have passed.
func (p *Proxy) CutAfter(n int) { p.setReplyQuota(n, p.Cut) }

// Reset ends all connections with RST. It accepts new connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLinks((*link).reset)
}

// ResetAfter calls Reset once, as soon as n more bytes of replies have passed.
func (p *Proxy) ResetAfter(n int) { p.setReplyQuota(n, p.Reset) }

// Stall keeps connections open and accepts new ones, but forwards no bytes.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = true
}

// Restore ends all faults. Stalled connections continue, as after a network outage.
func (p *Proxy) Restore() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay, p.stalled, p.ending = [2]time.Duration{}, false, nil
	close(p.changed)
	p.changed = make(chan struct{})
	if p.l != nil {
		return nil
	}
	return p.listen()
}

func (p *Proxy) setReplyQuota(n int, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quota, p.ending = n, end
}

// endLinks ends all links. The caller holds p.mu.
func (p *Proxy) endLinks(end func(*link)) {
	for l := range p.links {
		end(l)
	}
}

// listen begins to accept. The caller holds p.mu, or is alone.
func (p *Proxy) listen() error {
	listener, err := net.Listen("tcp", p.Addr)
	if err != nil {
		return err
	}
	l := listener.(*net.TCPListener)
	p.l = l
	p.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			p.work.Go(func() { p.serve(l, conn.(*net.TCPConn)) })
		}
	})
	return nil
}

// stopListening closes a listener. It calls Shutdown first, because a process that is being started has a copy of the
// descriptor until it calls exec, and would keep the port in use.
func stopListening(l *net.TCPListener) {
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RD) })
	}
	_ = l.Close()
}

func (p *Proxy) close() {
	p.Cut()
	p.work.Wait()
	p.port.Release()
}
