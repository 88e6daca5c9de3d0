package proxy

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// clients finds the client's address of a request.
type clients struct {
	address func(context.Context, *http.Request) netip.Addr
	key     ratelimit.KeyFunc
	trusted []netip.Prefix // proxies in front of this one
	header  string         // in which they send the address, "" if none is trusted
}

func newClients(c *config.Config) (clients, error) {
	out := clients{header: c.ClientHeader}
	for _, p := range c.TrustedProxies {
		out.trusted = append(out.trusted, netaddr.Unmap(p))
	}
	o := ratelimit.IPOptions{TrustedProxies: out.trusted, Header: c.ClientHeader}
	var err error
	if out.address, err = o.Client(); err != nil {
		return out, err
	}
	out.key, err = o.Key()
	return out, err
}

// addressText returns the client's address, "" if the request has none.
func (c *clients) addressText(ctx context.Context, r *http.Request) string {
	a := c.address(ctx, r)
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// peerAddr returns the address at the other end of the connection, the zero Addr if it has none.
func peerAddr(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
