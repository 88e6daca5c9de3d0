// Package addrkey reads the keys that count by an address.
package addrkey

import (
	"net/netip"
	"strings"
)

// Parse returns the addresses that a key such as 192.0.2.1 or 2001:db8::/64 counts by, the
// zero Prefix if it doesn't read like an address.
func Parse(key string) netip.Prefix {
	if strings.Trim(key, "0123456789abcdefABCDEF:./") != "" { // which spares most keys an error's cost
		return netip.Prefix{}
	}
	if strings.Contains(key, "/") {
		p, err := netip.ParsePrefix(key)
		if err != nil {
			return netip.Prefix{}
		}
		return p
	}
	a, err := netip.ParseAddr(key)
	if err != nil {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, a.BitLen())
}
