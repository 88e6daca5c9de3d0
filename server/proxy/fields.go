package proxy

import (
	"fmt"
	"net/http"
	"strings"
)

// goodName reports whether a request's field is passed on: its name has letters, digits and
// "-" only, or "_" if asked for. Servers that hand fields on in the way of CGI take others
// for different ones, X_Real_IP for X-Real-IP.
func goodName(name string, underscores bool) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_' && underscores:
		default:
			return false
		}
	}
	return true
}

// named returns the fields of h that are passed on: h itself if those are all.
func named(h http.Header, underscores bool) http.Header {
	var out http.Header
	for name := range h {
		if goodName(name, underscores) {
			continue
		}
		if out == nil {
			out = h.Clone()
		}
		delete(out, name)
	}
	if out == nil {
		return h
	}
	return out
}

// checkNames refuses rules and routes for fields that are dropped, or kept elsewhere.
func (g *generation) checkNames(c *Config, f *faults) {
	check := func(field, name string) {
		if strings.EqualFold(name, "Host") {
			f.addf(field, "Host is no header to match or count by: want hosts or {host}")
		}
		if !goodName(name, g.underscores) {
			f.addf(field, "the header %s is dropped from requests, as its name has other characters than letters, digits and - (see headers.underscores)", name)
		}
	}
	match := func(field string, m Match) {
		for name := range m.Headers {
			check(field+".match.headers", name)
		}
	}
	for i, r := range c.Rules {
		field := fmt.Sprintf("rules[%d]", i)
		match(field, r.Match)
		for j, t := range r.Tiers {
			match(fmt.Sprintf("%s.tiers[%d]", field, j), t.Match)
		}
		for _, p := range g.rules[i].key.parts {
			if p.kind == "header" {
				check(field+".key", p.name)
			}
		}
		if name, ok := strings.CutPrefix(r.Cost, "{header."); ok {
			check(field+".cost", strings.TrimSuffix(name, "}"))
		}
	}
	for i, r := range c.Routes {
		match(fmt.Sprintf("routes[%d]", i), r.Match)
	}
	check("client_header", c.ClientHeader)
}

// ofProxies are fields in which proxies tell servers about the client or what it has asked
// for, beside all that begin with X-Forwarded, X-Original- or X-Envoy-. "Proxy" is the one
// that CGI makes a setting of.
var ofProxies = map[string]bool{
	"Forwarded": true, "Forwarded-For": true, "X-Real-Ip": true, "X-Client-Ip": true, "X-Remote-Ip": true, "X-Remote-Addr": true, "Remote-Addr": true,
	"Client-Ip": true, "Proxy-Client-Ip": true, "Wl-Proxy-Client-Ip": true, "X-Proxyuser-Ip": true, "X-Originating-Ip": true,
	"True-Client-Ip": true, "X-Cluster-Client-Ip": true, "Fastly-Client-Ip": true, "Fastly-Ssl": true, "Fly-Client-Ip": true, "Do-Connecting-Ip": true,
	"Cf-Connecting-Ip": true, "Cf-Connecting-Ipv6": true, "Cf-Pseudo-Ipv4": true, "Cf-Visitor": true, "Cf-Ipcountry": true, "Incap-Client-Ip": true,
	"Ali-Cdn-Real-Ip": true, "Cdn-Src-Ip": true, "X-Nf-Client-Connection-Ip": true, "X-Azure-Clientip": true, "X-Azure-Socketip": true, "X-Appengine-User-Ip": true,
	"X-Scheme": true, "X-Url-Scheme": true, "Front-End-Https": true, "X-Arr-Ssl": true, "X-Host": true, "X-Rewrite-Url": true,
	"Client-Cert": true, "Client-Cert-Chain": true, "X-Client-Cert": true, "Ssl-Client-Cert": true, "X-Ssl-Client-Cert": true, "Proxy": true,
}

// ofProxy reports whether only a proxy may send a field.
func ofProxy(name string) bool {
	return ofProxies[name] || strings.HasPrefix(name, "X-Forwarded") || strings.HasPrefix(name, "X-Original-") || strings.HasPrefix(name, "X-Envoy-")
}

// scrub drops from the fields behind a body what only a proxy may send, and what named does.
func scrub(trailer http.Header, underscores bool) {
	for name := range trailer {
		if ofProxy(name) || !goodName(name, underscores) {
			delete(trailer, name)
		}
	}
}
