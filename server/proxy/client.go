package proxy

import (
	"context"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"

	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// clients tells who has sent a request.
type clients struct {
	address func(context.Context, *http.Request) netip.Addr
	key     ratelimit.KeyFunc
	trusted []netip.Prefix
	header  string // the one in which they tell, "" if nobody is trusted
}

func newClients(c *Config, f *faults) clients {
	o := ratelimit.IPOptions{TrustedProxies: prefixes(c.TrustedProxies), Header: c.ClientHeader}
	if len(c.TrustedProxies) > 0 && o.Header == "" {
		o.Header = "X-Forwarded-For"
	}
	out := clients{trusted: o.TrustedProxies, header: textproto.CanonicalMIMEHeaderKey(o.Header)}
	var err error
	switch {
	case c.ClientHeader != "" && !isToken(c.ClientHeader):
		f.addf("client_header", "%q is no header's name", c.ClientHeader)
		return out
	case c.ClientHeader != "" && len(c.TrustedProxies) == 0:
		f.addf("client_header", "is %q, but trusted_proxies names nobody who is believed", c.ClientHeader)
		return out
	}
	if out.address, err = o.Client(); err != nil {
		f.add("trusted_proxies", plainly(err))
		return out
	}
	out.key, err = o.Key()
	if err != nil {
		f.add("trusted_proxies", err)
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

// forward makes the fields that tell the upstream about the client right: what a trusted
// proxy has written is carried on, what anybody else has written is not. Of the two lists
// of addresses, only the one that trusted proxies keep is carried on: the other may be the
// client's own.
func (c *clients) forward(in, out *http.Request, withForwarded bool) {
	h, from := out.Header, peer(in)
	trusted := netaddr.Within(c.trusted, from)
	proto := "http"
	if in.TLS != nil {
		proto = "https"
	}
	node := "unknown"
	if from.IsValid() {
		node = from.String()
	}
	if trusted && c.header != "X-Forwarded-For" {
		if client := c.text(in.Context(), in); client != node {
			node = client + ", " + node
		}
	}
	if !trusted {
		for name := range h {
			if ofProxy(name) || name == c.header {
				delete(h, name)
			}
		}
	}
	list(h, "X-Forwarded-For", in.Header, trusted && c.header == "X-Forwarded-For", node)
	first(h, "X-Forwarded-Proto", in.Header, trusted, proto)
	first(h, "X-Forwarded-Host", in.Header, trusted, in.Host)
	keeps := trusted && c.header == "Forwarded"
	if withForwarded || keeps && len(in.Header["Forwarded"]) > 0 {
		list(h, "Forwarded", in.Header, keeps, element(from, in.Host, proto))
	}
}

// list appends to a list that the nearest proxy began, or begins it.
func list(h http.Header, name string, in http.Header, carry bool, value string) {
	if had := in[name]; carry && len(had) > 0 {
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
