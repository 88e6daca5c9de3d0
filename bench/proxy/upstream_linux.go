package proxy

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// upstream answers every request with the page. It is one thread that waits for all
// connections, and takes a few microseconds for each request, far less than any proxy.
type upstream struct {
	poll, listener int
	conns          map[int]*half
	response       []byte
	served         atomic.Int64
}

// half is the received part of a connection's next request.
type half struct {
	buf [4096]byte
	n   int
}

// playUpstream serves until standard input ends. It prints its address, and the number of
// requests that it has answered for each line of input.
func playUpstream([]byte) error {
	u := &upstream{conns: map[int]*half{}}
	u.response = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nServer: upstream\r\nDate: %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
		time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"), len(page), page)
	addr, err := u.open()
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- u.run() }()
	fmt.Println(addr)
	return eachLine(func() error {
		select {
		case err := <-failed:
			return err
		default:
			_, err := fmt.Println(strconv.FormatInt(u.served.Load(), 10))
			return err
		}
	})
}

func (u *upstream) open() (addr string, err error) {
	if u.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return "", err
	}
	if u.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return "", err
	}
	if err := unix.Bind(u.listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", err
	}
	if err := unix.Listen(u.listener, 1024); err != nil {
		return "", err
	}
	at, err := unix.Getsockname(u.listener)
	if err != nil {
		return "", err
	}
	port := strconv.Itoa(at.(*unix.SockaddrInet4).Port)
	return net.JoinHostPort("127.0.0.1", port), u.watch(u.listener)
}

func (u *upstream) watch(fd int) error {
	return unix.EpollCtl(u.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

func (u *upstream) run() error {
	events := make([]unix.EpollEvent, 256)
	for {
		n, err := unix.EpollWait(u.poll, events, -1)
		if err == unix.EINTR {
			continue
		} else if err != nil {
			return err
		}
		for _, e := range events[:n] {
			fd := int(e.Fd)
			if fd == u.listener {
				err = u.accept()
			} else if !u.answer(fd, u.conns[fd]) {
				delete(u.conns, fd)
				err = unix.Close(fd)
			}
			if err != nil {
				return err
			}
		}
	}
}

func (u *upstream) accept() error {
	fd, _, err := unix.Accept4(u.listener, unix.SOCK_CLOEXEC)
	if err != nil {
		return nil // the client has closed the connection
	}
	u.conns[fd] = &half{}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	return u.watch(fd)
}

// answer answers the complete requests, which have no bodies. It returns false at the end of the
// connection or if a request is too long.
func (u *upstream) answer(fd int, c *half) bool {
	n, err := unix.Read(fd, c.buf[c.n:])
	if err == unix.EINTR {
		return true
	} else if err != nil || n == 0 {
		return false
	}
	c.n += n
	for {
		end := bytes.Index(c.buf[:c.n], []byte("\r\n\r\n"))
		if end < 0 {
			return c.n < len(c.buf)
		}
		c.n = copy(c.buf[:], c.buf[end+4:c.n])
		u.served.Add(1)
		if n, err := unix.Write(fd, u.response); err != nil || n < len(u.response) {
			return false
		}
	}
}
