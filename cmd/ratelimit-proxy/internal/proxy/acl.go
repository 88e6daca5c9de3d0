package proxy

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// acl is a rule's list of clients. It contains networks and values of the rule's key. A nil list is empty.
type acl struct {
	part     config.KeyPart // the only part of the key; unused if values is empty
	networks []netip.Prefix
	values   map[string]bool
}

// newACL returns the list for entries that were checked. An entry such as 192.0.2.7 is an address. If the list denies
// clients, it is also a value of the key.
func newACL(entries []string, key config.Key, denies bool) *acl {
	if len(entries) == 0 {
		return nil
	}
	l := &acl{part: key[0], values: map[string]bool{}}
	for _, e := range entries {
		network, isNetwork := parseNetwork(e)
		if isNetwork {
			l.networks = append(l.networks, network)
		}
		if value, err := key.Value(e); err == nil && (denies || !isNetwork) {
			l.values[value] = true
		}
	}
	return l
}

// parseNetwork parses a network. A single address is a network with one address.
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

// unmapPrefix returns an IPv4 network if p contains only IPv6 addresses that stand for IPv4 addresses. Otherwise, it
// returns p. In both cases, the host bits are zero.
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

// allows reports whether the list allows the client of a request. If a header, cookie or parameter has several values,
// the request has no key, and no value is allowed.
func (l *acl) allows(r *http.Request, address netip.Addr) bool {
	if l == nil || containsAddr(l.networks, address) {
		return l != nil
	}
	values := l.keyValues(r, address)
	return len(values) == 1 && l.values[values[0]]
}

// denies reports whether the list denies the client of a request. If a header, cookie or parameter has several values, each
// of them counts, since the upstream may read any.
func (l *acl) denies(r *http.Request, address netip.Addr) bool {
	return l != nil && (containsAddr(l.networks, address) ||
		slices.ContainsFunc(l.keyValues(r, address), func(v string) bool { return l.values[v] }))
}

// keyValues returns the values that a request has for the key, or nil if the list has no values.
func (l *acl) keyValues(r *http.Request, address netip.Addr) []string {
	switch {
	case len(l.values) == 0:
		return nil
	case l.part.Kind == "client":
		return []string{netaddr.Plain(address).String()}
	default:
		return partValues(l.part, r)
	}
}
