// Package netaddr compares addresses of IPv4 with those that are mapped into IPv6.
package netaddr

import (
	"net/netip"
	"slices"
)

// Unmap returns the prefix that plain addresses are in: one of IPv4 if p is mapped into IPv6, without
// the bits that p doesn't count.
func Unmap(p netip.Prefix) netip.Prefix {
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// Within reports whether one of the prefixes contains a.
func Within(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}
