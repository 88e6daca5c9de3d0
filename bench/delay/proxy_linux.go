package delay

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lazyreq/lazyreq/bench/child"
)

// Proxy forwards connections to one address, and delays what it forwards. It is one
// thread that waits for a timer of the kernel: the delay is exact, and whatever
// arrives meanwhile is delayed by the same time, not one after the other.
type Proxy struct {
	Addr string // of its own

	target unix.SockaddrInet4
	delay  time.Duration

	poll, timer, listener, stop int         // file descriptors
	peers                       map[int]int // of each connection, the one on the other side
	late                        []parcel    // in the order in which they are due
	free                        [][]byte
	done                        chan error
}

// parcel is what is to be sent to a connection, or its end.
type parcel struct {
	due  time.Time
	to   int
	data []byte // nil: close
}

const parcelSize = 64 << 10

// Start starts a proxy in front of addr, with half the delay in each direction. It runs on these
// processors.
func Start(addr string, delay time.Duration, on child.CPUs) (*Proxy, error) {
	to, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		delay:  delay / 2,
		target: unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())},
		peers:  map[int]int{},
		done:   make(chan error, 1),
	}
	if err := p.open(); err != nil {
		return nil, err
	}
	go func() { p.done <- on.Do(p.run) }()
	return p, nil
}

func (p *Proxy) open() (err error) {
	if p.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return err
	}
	if p.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return err
	}
	if p.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if err = unix.Bind(p.listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err = unix.Listen(p.listener, 1024); err != nil {
		return err
	}
	self, err := unix.Getsockname(p.listener)
	if err != nil {
		return err
	}
	p.Addr = fmt.Sprintf("127.0.0.1:%d", self.(*unix.SockaddrInet4).Port)
	for _, fd := range []int{p.timer, p.stop, p.listener} {
		if err := p.watch(fd); err != nil {
			return err
		}
	}
	return nil
}

func (p *Proxy) watch(fd int) error {
	return unix.EpollCtl(p.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// Close ends the proxy and all of its connections.
func (p *Proxy) Close() error {
	if _, err := unix.Write(p.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	return <-p.done
}

func (p *Proxy) run() error {
	defer p.release()
	events := make([]unix.EpollEvent, 256)
	for {
		n, err := unix.EpollWait(p.poll, events, -1)
		if err == unix.EINTR {
			continue
		} else if err != nil {
			return err
		}
		for _, e := range events[:n] {
			switch fd := int(e.Fd); fd {
			case p.stop:
				return nil
			case p.listener:
				p.accept()
			case p.timer:
				var ticks [8]byte
				_, _ = unix.Read(fd, ticks[:]) // it is the clock that counts
			default:
				p.receive(fd)
			}
		}
		if err := p.deliver(); err != nil {
			return err
		}
	}
}

func (p *Proxy) release() {
	for fd := range p.peers {
		_ = unix.Close(fd)
	}
	for _, fd := range []int{p.poll, p.timer, p.stop, p.listener} {
		_ = unix.Close(fd)
	}
}

func (p *Proxy) accept() {
	in, _, err := unix.Accept4(p.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if err != nil {
		return // the client is gone again
	}
	out, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		if err = unix.Connect(out, &p.target); err == nil {
			err = unix.SetNonblock(out, true)
		}
	}
	if err != nil {
		_, _ = unix.Close(in), unix.Close(out)
		return
	}
	p.peers[in], p.peers[out] = out, in
	for _, fd := range []int{in, out} {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		_ = p.watch(fd)
	}
}

// receive notes what a connection has sent. At its end, the other side is closed when
// all before it was delivered.
func (p *Proxy) receive(fd int) {
	peer, ok := p.peers[fd]
	if !ok {
		return
	}
	buf := p.buffer()
	n, err := unix.Read(fd, buf)
	switch {
	case n > 0:
		p.late = append(p.late, parcel{time.Now().Add(p.delay), peer, buf[:n]})
		return
	case err == unix.EAGAIN || err == unix.EINTR:
	default:
		_ = unix.EpollCtl(p.poll, unix.EPOLL_CTL_DEL, fd, nil)
		p.late = append(p.late, parcel{time.Now().Add(p.delay), peer, nil})
	}
	p.free = append(p.free, buf)
}

// deliver sends what is due and sets the timer for the next.
func (p *Proxy) deliver() error {
	now, sent := time.Now(), 0
	for _, l := range p.late {
		if l.due.After(now) {
			break
		}
		sent++
		if l.data == nil {
			p.closePair(l.to)
			continue
		}
		p.send(l.to, l.data)
		p.free = append(p.free, l.data[:parcelSize])
	}
	p.late = append(p.late[:0], p.late[sent:]...)
	if len(p.late) == 0 {
		return nil
	}
	wait := max(1, time.Until(p.late[0].due))
	return unix.TimerfdSettime(p.timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(wait))}, nil)
}

// send writes all of data. A receiver that is slow holds up all connections, but what is
// under way is far smaller than its buffer.
func (p *Proxy) send(fd int, data []byte) {
	if _, ok := p.peers[fd]; !ok {
		return
	}
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		switch {
		case err == nil:
			data = data[n:]
		case err == unix.EAGAIN:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 100)
		case err != unix.EINTR:
			return // it is gone, which its side will tell
		}
	}
}

// closePair closes a connection whose other side has ended, and that side.
func (p *Proxy) closePair(fd int) {
	peer, ok := p.peers[fd]
	if !ok {
		return
	}
	for i := range p.late { // the next owner of these descriptors must get none of it
		if to := p.late[i].to; to == fd || to == peer {
			p.late[i].to = -1
		}
	}
	delete(p.peers, fd)
	delete(p.peers, peer)
	_, _ = unix.Close(fd), unix.Close(peer)
}

func (p *Proxy) buffer() []byte {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	return make([]byte, parcelSize)
}
