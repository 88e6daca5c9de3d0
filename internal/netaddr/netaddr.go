// Package netaddr compares IPv4 addresses with IPv4-mapped IPv6 addresses.
package netaddr

import (
	"net/netip"
	"slices"
)

// Unmap returns p as the prefix of unmapped addresses: an IPv4 prefix if p is IPv4-mapped. Its
// host bits are zero.
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
