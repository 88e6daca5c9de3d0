package proxy

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"

	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// requireHeader returns a policy that requires a PROXY protocol header from addresses in these networks. From other
// addresses, such a header is a malformed request.
func requireHeader(from []netip.Prefix) proxyproto.ConnPolicyFunc {
	return func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		at, err := netip.ParseAddrPort(o.Upstream.String())
		if err == nil && netaddr.Within(from, at.Addr().Unmap().WithZone("")) {
			return proxyproto.REQUIRE, nil
		}
		return proxyproto.SKIP, nil
	}
}

// headerListener is a listener that logs connections without the required PROXY protocol header, for example from a
// health check that only connects.
type headerListener struct {
	net.Listener
	log    *slog.Logger
	seldom throttledLog
}

// Accept implements [net.Listener].
func (l *headerListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if c, ok := conn.(*proxyproto.Conn); ok {
		return &headerConn{c, l}, nil
	}
	return conn, err
}

// headerConn is a connection that may have to begin with a PROXY protocol header.
type headerConn struct {
	*proxyproto.Conn
	l *headerListener
}

// Read reads data after the header. If the required header is missing, Read logs that.
func (c *headerConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) && c.ProxyHeader() == nil {
		c.l.seldom.write(c.l.log, slog.LevelWarn, "closed a connection without the required PROXY protocol header",
			slog.String("from", c.Raw().RemoteAddr().String()), slog.Any("error", err))
	}
	return n, err
}
