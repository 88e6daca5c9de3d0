package proxy

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// proxyHeaders lists headers in which proxies describe the client or its request. Some CGI programs read the header
// Proxy as a setting. isProxyHeader adds headers by the beginning of their names.
var proxyHeaders = map[string]bool{
	"Forwarded": true, "Forwarded-For": true, "X-Real-Ip": true, "X-Client-Ip": true, "X-Remote-Ip": true, "X-Remote-Addr": true, "Remote-Addr": true,
	"Client-Ip": true, "Proxy-Client-Ip": true, "Wl-Proxy-Client-Ip": true, "X-Proxyuser-Ip": true, "X-Originating-Ip": true,
	"True-Client-Ip": true, "X-Cluster-Client-Ip": true, "Fastly-Client-Ip": true, "Fastly-Ssl": true, "Fly-Client-Ip": true, "Do-Connecting-Ip": true,
	"Cf-Connecting-Ip": true, "Cf-Connecting-Ipv6": true, "Cf-Pseudo-Ipv4": true, "Cf-Visitor": true, "Cf-Ipcountry": true, "Incap-Client-Ip": true,
	"Ali-Cdn-Real-Ip": true, "Cdn-Src-Ip": true, "X-Nf-Client-Connection-Ip": true, "X-Azure-Clientip": true, "X-Azure-Socketip": true, "X-Appengine-User-Ip": true,
	"X-Scheme": true, "X-Url-Scheme": true, "Front-End-Https": true, "X-Arr-Ssl": true, "X-Host": true, "X-Rewrite-Url": true,
	"Client-Cert": true, "Client-Cert-Chain": true, "X-Client-Cert": true, "Ssl-Client-Cert": true, "X-Ssl-Client-Cert": true, "Proxy": true,
}

// isProxyHeader reports whether only a proxy may send a header.
func isProxyHeader(name string) bool {
	return proxyHeaders[name] || strings.HasPrefix(name, "X-Forwarded") || strings.HasPrefix(name, "X-Original-") || strings.HasPrefix(name, "X-Envoy-")
}

// setForwarded sets the headers that describe the client for the upstream. It keeps values from a trusted proxy and
// removes values from other clients. There are two lists of addresses, X-Forwarded-For and Forwarded. It keeps only
// the one that trusted proxies maintain, because a client may have made up the other.
func (c *clients) setForwarded(in, out *http.Request) {
	h, from := out.Header, peerAddr(in)
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
		if client := c.addressText(in.Context(), in); client != node {
			node = client + ", " + node
		}
	}
	if !trusted {
		for name := range h {
			if isProxyHeader(name) || name == c.header {
				delete(h, name)
			}
		}
	}
	h["X-Forwarded-For"] = []string{appendedValue(in.Header, "X-Forwarded-For", trusted && c.header == "X-Forwarded-For", node)}
	h["X-Forwarded-Proto"], h["X-Forwarded-Host"] = []string{proto}, []string{in.Host}
	for _, name := range [...]string{"X-Forwarded-Proto", "X-Forwarded-Host"} {
		if list := in.Header[name]; trusted && len(list) > 0 {
			h[name] = list
		}
	}
	if list := in.Header["Forwarded"]; trusted && c.header == "Forwarded" && len(list) > 0 {
		h["Forwarded"] = list
	}
}

// appendedValue returns value. If keep is set, it puts the list in h before the value.
func appendedValue(h http.Header, name string, keep bool, value string) string {
	if list := h[name]; keep && len(list) > 0 {
		return strings.Join(list, ", ") + ", " + value
	}
	return value
}

// isLoop reports whether a request has been through this proxy.
func (p *Proxy) isLoop(r *http.Request) bool {
	for _, line := range r.Header["Via"] {
		if strings.Contains(line, p.pseudonym) {
			return true
		}
	}
	return false
}

// addVia adds this proxy to the Via header.
func (p *Proxy) addVia(in, out *http.Request) {
	via := strconv.Itoa(in.ProtoMajor) + "." + strconv.Itoa(in.ProtoMinor) + " " + p.pseudonym
	out.Header["Via"] = []string{appendedValue(in.Header, "Via", true, via)}
}

// clients finds the client's address of a request.
type clients struct {
	address func(context.Context, *http.Request) netip.Addr
	key     ratelimit.KeyFunc
	trusted []netip.Prefix // proxies in front of this one
	header  string         // name of the header with the client's address, or "" without trusted proxies
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

// addressText returns the client's address, or "" if the request has none.
func (c *clients) addressText(ctx context.Context, r *http.Request) string {
	a := c.address(ctx, r)
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// peerAddr returns the address at the other end of the connection, or the zero Addr if it has none.
func peerAddr(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
