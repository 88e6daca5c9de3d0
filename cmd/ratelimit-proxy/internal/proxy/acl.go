package proxy

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// acl is a list of clients: networks, and values of a rule's key. A nil list is empty.
type acl struct {
	key      config.Key
	networks []netip.Prefix
	values   valueSet
}

// newACL returns the list with these entries, which were checked. An entry such as 192.0.2.7 is an address. In a list that
// denies clients, it is also a value of the key.
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

// parseNetwork reads a network, or an address as a network with one address.
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

// unmapPrefix returns p as an IPv4 network if it contains only translated IPv4 addresses. Otherwise, it returns p.
// The result has no host bits.
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

// allows reports whether the list allows the client of a request.
func (l *acl) allows(r *http.Request, address netip.Addr) bool {
	return l != nil && (containsAddr(l.networks, address) || len(l.values) > 0 && l.values.contains(keyValues(l.key, r, address)))
}

// denies reports whether the list denies the client of a request. If a header, cookie or parameter has several values, each
// of them counts, since the upstream may read any.
func (l *acl) denies(r *http.Request, address netip.Addr) bool {
	return l != nil && (containsAddr(l.networks, address) || len(l.values) > 0 && l.values.containsAny(keyValues(l.key, r, address)))
}

// valueSet is a set of keys, as a tree: it maps each value of the key's first part to the set of the other parts. After
// the last part, the set is nil.
type valueSet map[string]valueSet

// add adds a key in the form of [config.Key.Values].
func (s valueSet) add(values []string) {
	last := len(values) - 1
	for _, v := range values[:last] {
		if s[v] == nil {
			s[v] = valueSet{}
		}
		s = s[v]
	}
	s[values[last]] = nil
}

// contains reports whether the key of a request is in the set. A request with several values for a part has no key.
func (s valueSet) contains(values [][]string) bool {
	return !slices.ContainsFunc(values, func(part []string) bool { return len(part) != 1 }) && s.containsAny(values)
}

// containsAny reports whether the set contains a combination of the values. A part can have several values.
func (s valueSet) containsAny(values [][]string) bool {
	if len(values) == 0 {
		return true
	}
	return slices.ContainsFunc(values[0], func(v string) bool {
		next, ok := s[v]
		return ok && next.containsAny(values[1:])
	})
}

// keyValues returns the values that a request has for each part of a key.
func keyValues(k config.Key, r *http.Request, address netip.Addr) (values [][]string) {
	for _, p := range k {
		switch p.Kind {
		case "":
		case "client":
			values = append(values, []string{netaddr.Plain(address).String()})
		default:
			values = append(values, partValues(p, r))
		}
	}
	return values
}
