package layer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit/internal/addrkey"
)

// List contains the keys that any of its fields matches. Keys are those that the store gets:
// a policy's keys are its name, ":" ("~" for those of its Fallback), and what its Key
// returned, in the form that [ratelimit.KeyFunc] describes.
type List struct {
	// Keys are whole keys, such as "search:192.0.2.1".
	Keys []string
	// Prefixes match the start of a key: "search:" matches all keys of a policy.
	Prefixes []string
	// Networks match keys that count by an address in the network, or by several addresses
	// that are all in it: the network of one IPv6 address doesn't contain the /64 that the
	// address is counted in. IPv4-mapped IPv6 addresses are IPv4 addresses.
	// [ListsOptions.Address] finds a key's addresses.
	Networks []netip.Prefix
}

// list is a List for look-ups.
type list struct {
	keys     map[string]struct{}
	prefixes map[string]struct{}
	lengths  []int // distinct lengths of prefixes
	networks networks
}

// newList returns an error if an entry is invalid; name is the list's field.
func newList(name string, from List) (*list, error) {
	l := &list{keys: map[string]struct{}{}, prefixes: map[string]struct{}{}}
	for i, k := range from.Keys {
		if k == "" {
			return nil, option.Errorf("layer", fmt.Sprintf("%s.Keys[%d]", name, i), "is empty")
		}
		l.keys[k] = struct{}{}
	}
	for i, p := range from.Prefixes {
		if p == "" {
			return nil, option.Errorf("layer", fmt.Sprintf("%s.Prefixes[%d]", name, i), "is empty, which would match every key")
		}
		l.prefixes[p] = struct{}{}
		if !slices.Contains(l.lengths, len(p)) {
			l.lengths = append(l.lengths, len(p))
		}
	}
	for i, p := range from.Networks {
		if !p.IsValid() {
			return nil, option.Errorf("layer", fmt.Sprintf("%s.Networks[%d]", name, i), "is not a prefix")
		}
		l.networks.add(netaddr.Unmap(p))
	}
	return l, nil
}

// contains reports whether the list matches a key that counts by these addresses.
func (l *list) contains(key string, addresses netip.Prefix) bool {
	if _, ok := l.keys[key]; ok {
		return true
	}
	for _, n := range l.lengths {
		if n > len(key) {
			continue
		}
		if _, ok := l.prefixes[key[:n]]; ok {
			return true
		}
	}
	return addresses.IsValid() && l.networks.contains(addresses)
}

// networks is a set of networks.
type networks struct {
	set          map[netip.Prefix]struct{}
	bits4, bits6 []int // distinct prefix lengths
}

func (n *networks) add(p netip.Prefix) {
	if n.set == nil {
		n.set = map[netip.Prefix]struct{}{}
	}
	n.set[p] = struct{}{}
	bits := &n.bits6
	if p.Addr().Is4() {
		bits = &n.bits4
	}
	if !slices.Contains(*bits, p.Bits()) {
		*bits = append(*bits, p.Bits())
	}
}

// contains reports whether all of p is in one of the networks.
func (n *networks) contains(p netip.Prefix) bool {
	lengths := n.bits6
	if p.Addr().Is4() {
		lengths = n.bits4
	}
	for _, bits := range lengths {
		if bits > p.Bits() {
			continue
		}
		wider, _ := p.Addr().Prefix(bits) // fails only for lengths that no network has
		if _, ok := n.set[wider]; ok {
			return true
		}
	}
	return false
}

// policyAddress returns the addresses in a policy's key, which follow its name. A name contains
// neither ":" nor "~".
func policyAddress(key string) netip.Prefix {
	if i := strings.IndexAny(key, ":~"); i >= 0 {
		key = key[i+1:]
	}
	return addrkey.Parse(key)
}
