// Package netaddr reads addresses, and compares IPv4 addresses with IPv6 addresses that stand for them.
package netaddr

import (
	"net/netip"
	"slices"
	"strings"
)

// Unmap returns an IPv4 prefix if p is IPv4-mapped, and otherwise p. Its host bits are zero.
func Unmap(p netip.Prefix) netip.Prefix {
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// NAT64 is the prefix of IPv4 addresses that a gateway has translated (RFC 6052).
var NAT64 = netip.MustParsePrefix("64:ff9b::/96")

// Plain returns the IPv4 address that a stands for if it is IPv4-mapped or translated by NAT64. Otherwise, it returns a
// without its zone.
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

// ParsePrefix returns the addresses that a text such as 192.0.2.1 or 2001:db8::/64 stands for. It returns the zero Prefix
// for any other text.
func ParsePrefix(s string) netip.Prefix {
	if strings.Trim(s, "0123456789abcdefABCDEF:./") != "" { // saves the cost of an error for most other texts
		return netip.Prefix{}
	}
	if strings.Contains(s, "/") {
		p, _ := netip.ParsePrefix(s)
		return p
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, a.BitLen())
}
