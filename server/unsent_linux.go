package server

import (
	"crypto/tls"
	"net"
	"syscall"
)

// tcpNotSentLowat is TCP_NOTSENT_LOWAT of linux/tcp.h, which is missing in package syscall.
const tcpNotSentLowat = 25

// boundUnsent makes writes to c wait until fewer than two pieces are unsent. By default, the kernel buffers megabytes
// and reports no progress until a third of them is sent, so a slow but steady reader would look stalled.
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
