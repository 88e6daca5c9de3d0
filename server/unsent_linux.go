package server

import (
	"crypto/tls"
	"net"
	"syscall"
)

// tcpNotSentLowat is TCP_NOTSENT_LOWAT of linux/tcp.h, which package syscall lacks.
const tcpNotSentLowat = 25

// boundUnsent has writes to c return once fewer than two pieces wait to be sent. By default the
// kernel takes megabytes and then reports no progress until a third of them is gone, so that a
// steady but slow reader would look like one that has stalled.
func boundUnsent(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, 2*piece)
	})
}
