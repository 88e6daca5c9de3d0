package proxy

import (
	"net/http"
	"net/netip"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// acl is a list of clients: networks, and values of a rule's key. The nil list is empty.
type acl struct {
	key      config.Key
	networks []netip.Prefix
	values   valueSet
}

// newACL returns a list of clients that was checked. An entry such as 192.0.2.7 is an address. If
// the list is to deny clients, it is a value of the key as well.
func newACL(entries []string, key config.Key, denies bool) *acl {
	if len(entries) == 0 {
		return nil
	}
	l := &acl{key: key, values: valueSet{}}
	for _, e := range entries {
		network, isNetwork := parseNetwork(e)
		if isNetwork {
			l.networks = append(l.networks, network)
		}
		if values, err := key.Values(e); err == nil && (denies || !isNetwork) {
			l.values.add(values)
		}
	}
	return l
}

// parseNetwork reads a network, or an address as a network of its own.
func parseNetwork(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return unmapPrefix(p), true
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	a = netaddr.Plain(a)
	return netip.PrefixFrom(a, a.BitLen()), true
}

// unmapPrefix returns the IPv4 network that p stands for, or p itself in its shortest form.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if a := netaddr.Plain(p.Addr()); a.Is4() && p.Addr().Is6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a, p.Bits()-96)
	}
	return p.Masked()
}

// containsAddr reports whether one of the networks contains the client's address.
func containsAddr(networks []netip.Prefix, address netip.Addr) bool {
	return netaddr.Within(networks, address) || netaddr.Within(networks, netaddr.Plain(address))
}

// allows reports whether the request is on a list of allowed clients.
func (l *acl) allows(r *http.Request, address netip.Addr) bool {
	return l != nil && (containsAddr(l.networks, address) || len(l.values) > 0 && l.values.contains(keyValues(l.key, r, address)))
}

// denies reports whether the request is on a list of denied clients. Each of several values of
// a header or the like counts: the upstream may read any.
func (l *acl) denies(r *http.Request, address netip.Addr) bool {
	return l != nil && (containsAddr(l.networks, address) || len(l.values) > 0 && l.values.containsAny(keyValues(l.key, r, address)))
}
