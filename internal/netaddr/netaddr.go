// Package netaddr compares IPv4 addresses with IPv6 addresses that stand for them.
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

// NAT64 is the prefix of IPv4 addresses that a gateway has translated (RFC 6052).
var NAT64 = netip.MustParsePrefix("64:ff9b::/96")

// Plain returns the IPv4 address that a stands for if it is IPv4-mapped or translated by NAT64.
// Otherwise, it returns a without its zone.
func Plain(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !NAT64.Contains(a) {
		return a
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// Within reports whether one of the prefixes contains a.
func Within(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}
