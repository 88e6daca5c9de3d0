package load

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Run sends the load of connections that conn returns by their numbers, from 0 on. A
// wrong answer ends it, and is in the result; what the server can't help is an error.
func Run(o Options, conn func(i int) Conn) (Result, error) {
	g := &generator{o: &o, clients: map[int]*client{}}
	err := g.open(conn)
	defer g.close()
	if err == nil {
		err = g.run()
	}
	if errors.Is(err, ErrWrong) {
		return Result{Requests: g.sent, Wrong: err.Error()}, nil
	} else if err != nil {
		return Result{}, err
	}
	return o.newResult(g.sent, g.took)
}

type generator struct {
	o          *Options
	poll       int
	clients    map[int]*client // by file descriptor
	began, end time.Time       // of what is measured
	marks      []mark          // that are still to come
	sent       int
	took       []time.Duration
}

// mark is something to be called at a time.
type mark struct {
	at time.Time
	fn func() error
}

// client is one connection.
type client struct {
	fd    int
	conn  Conn
	since time.Time
	buf   [4096]byte // an answer
	n     int        // how much of it is here
}

func (g *generator) open(conn func(i int) Conn) error {
	to, err := net.ResolveTCPAddr("tcp4", g.o.Addr)
	if err != nil {
		return err
	}
	if g.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	for i := range g.o.Conns {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		g.clients[fd] = &client{fd: fd, conn: conn(i)}
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return err
		}
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
		if err := unix.EpollCtl(g.poll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) close() {
	_ = unix.Close(g.poll)
	for fd := range g.clients {
		_ = unix.Close(fd)
	}
}

func (g *generator) run() error {
	now := time.Now()
	g.began = now.Add(g.o.WarmUp)
	g.end = g.began.Add(g.o.Measure)
	g.marks = []mark{{g.began, g.o.Began}, {g.end, g.o.Ended}}
	for _, c := range g.clients {
		if err := g.sendRequest(c, now); err != nil {
			return err
		}
	}
	events := make([]unix.EpollEvent, len(g.clients))
	for open := len(g.clients); open > 0; {
		n, err := unix.EpollWait(g.poll, events, 5000)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return errors.New("no answer for 5 s")
		}
		for _, e := range events[:n] {
			more, err := g.receive(g.clients[int(e.Fd)])
			if err != nil {
				return err
			}
			if !more {
				open--
			}
		}
	}
	return nil
}

// sendRequest sends c's next request. It is far smaller than a socket's buffer.
func (g *generator) sendRequest(c *client, now time.Time) error {
	c.since, c.n = now, 0
	g.sent++
	text := c.conn.Next()
	n, err := unix.Write(c.fd, text)
	if err == nil && n < len(text) {
		err = errors.New("a request was sent in part")
	}
	return err
}

// receive reads what there is of an answer. When it is whole, it asks for the next, as
// long as there is time; else it returns false.
func (g *generator) receive(c *client) (more bool, err error) {
	n, err := unix.Read(c.fd, c.buf[c.n:])
	switch {
	case err == unix.EINTR:
		return true, nil
	case err != nil:
		return false, err
	case n == 0:
		return false, fmt.Errorf("%w: the connection ended, or the answer is too long", ErrWrong)
	}
	c.n += n
	whole, err := c.conn.Check(c.buf[:c.n])
	if err != nil || !whole {
		return true, err
	}
	now := time.Now()
	if err := g.sendDueRequests(now); err != nil {
		return false, err
	}
	if !c.since.Before(g.began) && !now.After(g.end) {
		g.took = append(g.took, now.Sub(c.since))
	}
	if now.After(g.end) {
		return false, nil
	}
	return true, g.sendRequest(c, now)
}

// sendDueRequests sends the requests that are due.
func (g *generator) sendDueRequests(now time.Time) error {
	for len(g.marks) > 0 && now.After(g.marks[0].at) {
		fn := g.marks[0].fn
		g.marks = g.marks[1:]
		if fn != nil {
			if err := fn(); err != nil {
				return err
			}
		}
	}
	return nil
}
