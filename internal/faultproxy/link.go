package faultproxy

import (
	"net"
	"sync"
	"time"
)

// The directions of a link.
const (
	requests = iota
	replies
)

// link is one connection through the proxy.
type link struct {
	p              *Proxy
	client, server *net.TCPConn
	once           sync.Once
	closed         chan struct{}
}

// chunk is bytes in flight.
type chunk struct {
	b   []byte
	due time.Time
}

// serve forwards a connection that l accepted, until one side or a fault ends it.
func (p *Proxy) serve(l *net.TCPListener, client *net.TCPConn) {
	conn, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	k := &link{p: p, client: client, server: conn.(*net.TCPConn), closed: make(chan struct{})}
	p.mu.Lock()
	if p.l == l { // Cut was not called meanwhile
		p.links[k] = struct{}{}
	} else {
		k.close()
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { k.forward(requests, k.client, k.server) })
	both.Go(func() { k.forward(replies, k.server, k.client) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, k)
	p.mu.Unlock()
}

// forward forwards all bytes from from, and then ends the link. Reading does not wait for bytes in flight, so that
// latency does not limit the rate.
func (k *link) forward(direction int, from, to *net.TCPConn) {
	chunks := make(chan chunk, 1024)
	k.p.work.Go(func() { k.deliver(direction, chunks, to) })
	defer close(chunks)
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		if err != nil {
			return
		}
		select {
		case chunks <- chunk{b[:n], time.Now().Add(k.p.latency(direction))}:
		case <-k.closed:
			return
		}
	}
}

func (k *link) deliver(direction int, chunks <-chan chunk, to *net.TCPConn) {
	defer k.close()
	for c := range chunks {
		if !k.waitUntilDue(c.due) {
			return
		}
		b, end := c.b, func() {}
		if direction == replies {
			b, end = k.p.countReplyBytes(c.b)
		}
		_, err := to.Write(b)
		end()
		if err != nil {
			return
		}
	}
}

// waitUntilDue waits until a time, and until the proxy does not stall. It returns false if the link ends first.
func (k *link) waitUntilDue(due time.Time) bool {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.closed:
		return false
	}
	for {
		stalled, changed := k.p.stallState()
		if !stalled {
			return true
		}
		select {
		case <-changed:
		case <-k.closed:
			return false
		}
	}
}

func (k *link) close() {
	k.once.Do(func() {
		close(k.closed)
		_ = k.client.Close()
		_ = k.server.Close()
	})
}

func (k *link) reset() {
	_ = k.client.SetLinger(0) // then Close sends RST
	_ = k.server.SetLinger(0)
	k.close()
}

func (p *Proxy) latency(direction int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay[direction]
}

func (p *Proxy) stallState() (stalled bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled, p.changed
}

// countReplyBytes subtracts bytes of a reply from the quota. It returns the bytes that pass, and a function that the
// caller calls after it has sent them.
func (p *Proxy) countReplyBytes(b []byte) (passing []byte, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ending == nil:
		return b, func() {}
	case len(b) < p.quota:
		p.quota -= len(b)
		return b, func() {}
	}
	b, end = b[:p.quota], p.ending
	p.ending = nil
	return b, end
}
