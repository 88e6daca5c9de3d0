package proxy

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"

	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// announced wants a PROXY protocol header of the connections from some addresses. To the
// others it is no more than a malformed request.
func announced(from []netip.Prefix) proxyproto.ConnPolicyFunc {
	return func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		at, err := netip.ParseAddrPort(o.Upstream.String())
		if err == nil && netaddr.Within(from, at.Addr().Unmap().WithZone("")) {
			return proxyproto.REQUIRE, nil
		}
		return proxyproto.SKIP, nil
	}
}

// announcedListener logs connections that have to begin with a header and don't: a check that
// only connects is one of them.
type announcedListener struct {
	net.Listener
	log    *slog.Logger
	seldom seldom
}

// Accept is for net/http.
func (l *announcedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if told, ok := conn.(*proxyproto.Conn); ok {
		return &announcedConn{told, l}, nil
	}
	return conn, err
}

func (l *announcedListener) missing(from net.Addr, err error) {
	l.seldom.log(l.log, slog.LevelWarn, "a connection that should begin with a PROXY protocol header was closed",
		slog.String("from", from.String()), slog.Any("error", err))
}

// announcedConn is a connection that should begin with a header.
type announcedConn struct {
	*proxyproto.Conn
	of *announcedListener
}

// Read reads what comes after the header.
func (c *announcedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) && c.ProxyHeader() == nil { // by us, at the stop
		c.of.missing(c.Raw().RemoteAddr(), err)
	}
	return n, err
}
