package forwarded

import (
	"context"
	"net"
	"net/http"
	"net/netip"

	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// Trust names the proxies whose reports are believed, and the header that they write.
type Trust struct {
	Proxies    []netip.Prefix
	Header     string // canonical
	UnixSocket bool   // also trust peers on a Unix socket that the server listens on
}

// Client returns the address of the client that sent r: the first address that is not a trusted
// proxy's, from the peer's to the left of the header, or else the last good one. It is without
// zone, and an IPv4 address as such. The zero Addr means that the peer has none and isn't trusted
// to report one.
func (t *Trust) Client(ctx context.Context, r *http.Request) netip.Addr {
	var peer netip.Addr
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		peer = at.Addr().Unmap().WithZone("")
		if !netaddr.Within(t.Proxies, peer) {
			return peer
		}
	} else if !t.UnixSocket || !isUnixSocket(ctx) {
		return peer
	}
	for a := range Addrs(t.Header, r.Header[t.Header]) {
		switch {
		case !a.IsValid():
			return peer
		case !netaddr.Within(t.Proxies, a):
			return a
		}
		peer = a
	}
	return peer
}

// isUnixSocket looks at the server's end of the connection: the client's has no name.
func isUnixSocket(ctx context.Context) bool {
	a, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	return ok && a.Network() == "unix"
}
