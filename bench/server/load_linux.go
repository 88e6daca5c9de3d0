package server

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// run sends the load from this process, on one thread that waits for all connections
// at once: it takes as little as it can of the processors that Redis has, too.
func (l *load) run() (loaded, error) {
	g := &generator{load: l, clients: map[int]*client{}}
	err := g.open()
	defer g.close()
	if err == nil {
		err = g.run()
	}
	if errors.Is(err, errWrong) {
		return loaded{Requests: g.sent, Wrong: err.Error()}, nil
	} else if err != nil {
		return loaded{}, err
	}
	return l.sum(g.sent, g.took)
}

type generator struct {
	load       *load
	poll       int
	clients    map[int]*client // by file descriptor
	began, end time.Time       // of what is measured
	sent       int
	took       []time.Duration
}

// client is one connection.
type client struct {
	fd    int
	mix   mix
	asked *question
	since time.Time
	buf   [4096]byte // an answer
	n     int        // how much of it is here
}

func (g *generator) open() error {
	to, err := net.ResolveTCPAddr("tcp4", g.load.Addr)
	if err != nil {
		return err
	}
	if g.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	for i := range g.load.Conns {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		g.clients[fd] = &client{fd: fd, mix: g.load.mix(i)}
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
	g.began = now.Add(g.load.WarmUp)
	g.end = g.began.Add(g.load.Measure)
	for _, c := range g.clients {
		if err := g.ask(c, now); err != nil {
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

// ask sends c's next request. It is far smaller than a socket's buffer.
func (g *generator) ask(c *client, now time.Time) error {
	c.asked, c.since, c.n = c.mix.next(), now, 0
	g.sent++
	n, err := unix.Write(c.fd, c.asked.text)
	if err == nil && n < len(c.asked.text) {
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
		return false, fmt.Errorf("%w: the connection ended, or the answer is too long", errWrong)
	}
	c.n += n
	whole, err := c.asked.check(c.buf[:c.n])
	if err != nil || !whole {
		return true, err
	}
	now := time.Now()
	if !c.since.Before(g.began) && !now.After(g.end) {
		g.took = append(g.took, now.Sub(c.since))
	}
	if now.After(g.end) {
		return false, nil
	}
	return true, g.ask(c, now)
}
