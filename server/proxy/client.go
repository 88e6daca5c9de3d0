package proxy

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// clients tells who has sent a request.
type clients struct {
	address func(context.Context, *http.Request) netip.Addr
	key     ratelimit.KeyFunc
	trusted []netip.Prefix
}

func newClients(c *Config, f *faults) clients {
	o := ratelimit.IPOptions{TrustedProxies: c.TrustedProxies, Header: c.ClientHeader}
	if len(c.TrustedProxies) > 0 && o.Header == "" {
		o.Header = "X-Forwarded-For"
	}
	out := clients{trusted: unmapped(c.TrustedProxies)}
	var err error
	if out.address, err = o.Client(); err != nil {
		f.add("trusted_proxies", err)
		return out
	}
	out.key, err = o.Key()
	if err != nil {
		f.add("trusted_proxies", err)
	}
	return out
}

func unmapped(prefixes []netip.Prefix) []netip.Prefix {
	out := slices.Clone(prefixes)
	for i, p := range out {
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			out[i] = netip.PrefixFrom(a.Unmap(), p.Bits()-96).Masked()
		}
	}
	return out
}

// peer returns the address at the other end of the connection, the zero Addr if it has
// none.
func peer(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

func within(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// forward makes the fields that tell the upstream about the client right: what a trusted
// proxy has written is carried on, what anybody else has written is not.
func (c *clients) forward(in, out *http.Request, withForwarded bool) {
	h, from := out.Header, peer(in)
	trusted := within(c.trusted, from)
	proto := "http"
	if in.TLS != nil {
		proto = "https"
	}
	node := "unknown"
	if from.IsValid() {
		node = from.String()
	}
	list(h, "X-Forwarded-For", in.Header, trusted, node)
	first(h, "X-Forwarded-Proto", in.Header, trusted, proto)
	first(h, "X-Forwarded-Host", in.Header, trusted, in.Host)
	for _, name := range []string{"X-Real-Ip", "X-Forwarded-Port", "X-Forwarded-Server"} {
		if !trusted {
			h.Del(name)
		}
	}
	switch carried := in.Header["Forwarded"]; {
	case withForwarded || trusted && len(carried) > 0:
		list(h, "Forwarded", in.Header, trusted, element(from, in.Host, proto))
	default:
		h.Del("Forwarded")
	}
}

// list appends to a list that the nearest proxy began, or begins it.
func list(h http.Header, name string, in http.Header, trusted bool, value string) {
	if had := in[name]; trusted && len(had) > 0 {
		value = strings.Join(had, ", ") + ", " + value
	}
	h[name] = []string{value}
}

// first leaves what the first proxy wrote.
func first(h http.Header, name string, in http.Header, trusted bool, value string) {
	if had := in[name]; trusted && len(had) > 0 {
		h[name] = had
		return
	}
	h[name] = []string{value}
}

// element is one of a Forwarded field (RFC 7239).
func element(from netip.Addr, host, proto string) string {
	node := "unknown"
	switch {
	case from.Is4():
		node = from.String()
	case from.IsValid():
		node = `"[` + from.String() + `]"`
	}
	e := "for=" + node
	if host != "" {
		e += `;host="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(host) + `"`
	}
	return e + ";proto=" + proto
}
