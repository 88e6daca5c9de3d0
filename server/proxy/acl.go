package proxy

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/server/proxy/config"
)

// acl is a list of clients: networks, and values of a rule's key. The nil list is empty.
type acl struct {
	key      config.Key
	networks []netip.Prefix
	values   map[string]bool
}

func newACL(entries []string, key config.Key) *acl {
	if len(entries) == 0 {
		return nil
	}
	l := &acl{key: key, values: map[string]bool{}}
	for _, e := range entries {
		if p, err := netip.ParsePrefix(e); err == nil {
			l.networks = append(l.networks, unmapPrefix(p))
		} else if a, err := netip.ParseAddr(e); err == nil {
			l.networks = append(l.networks, unmapPrefix(netip.PrefixFrom(a.WithZone(""), a.BitLen())))
		} else {
			l.values[key.Normalize(e)] = true
		}
	}
	return l
}

// nat64 is the prefix of IPv4 addresses that a gateway has translated (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// unmapPrefix returns the IPv4 network that p stands for, or p itself in its shortest form.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if p.Bits() >= nat64.Bits() && nat64.Contains(p.Addr()) {
		b := p.Addr().As16()
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(b[12:])), p.Bits()-nat64.Bits()).Masked()
	}
	return netaddr.Unmap(p)
}

// containsAddr reports whether one of the networks contains the client's address.
func containsAddr(networks []netip.Prefix, address netip.Addr) bool {
	return address.IsValid() && (netaddr.Within(networks, address) ||
		nat64.Contains(address) && netaddr.Within(networks, unmapPrefix(netip.PrefixFrom(address, 128)).Addr()))
}

// allows reports whether the request is on a list of allowed clients.
func (l *acl) allows(r *http.Request, address netip.Addr) bool {
	return l != nil && (containsAddr(l.networks, address) || len(l.values) > 0 && l.values[keyText(l.key, r, addressText(address))])
}

// denies reports whether the request is on a list of denied clients. Each of several values of
// a header or the like counts: the upstream may read any.
func (l *acl) denies(r *http.Request, address netip.Addr) bool {
	if l == nil {
		return false
	}
	if len(l.values) > 0 && len(l.key) == 1 && l.key[0].Kind != "client" &&
		slices.ContainsFunc(partValues(l.key[0], r), func(v string) bool { return l.values[v] }) {
		return true
	}
	return l.allows(r, address)
}

// addressText returns an address, "" for none.
func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
