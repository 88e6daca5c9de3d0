package layer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/ratelimit/internal/addrkey"
)

// List says which keys are on a list: those that any of its fields names. Keys are as the
// store gets them: a Policy's are its name, ":" (for those of its Fallback "~"), and what
// its Key returned, in the form that [ratelimit.KeyFunc] describes.
type List struct {
	// Keys are whole keys, such as "search:192.0.2.1".
	Keys []string
	// Prefixes are what keys begin with: "search:" is all keys of a policy.
	Prefixes []string
	// Networks are those of whose addresses a key counts by one, or by several of which
	// all are in the network: an IPv6 address alone doesn't list the /64 that it is
	// counted in. IPv4 inside of IPv6 (mapped) is IPv4. See [ListsOptions.Address] for
	// which keys count by an address.
	Networks []netip.Prefix
}

// list is a List for look-ups.
type list struct {
	keys     map[string]struct{}
	prefixes map[string]struct{}
	lengths  []int // of the prefixes, each once
	networks networks
}

func newList(name string, from List) (*list, error) {
	l := &list{keys: map[string]struct{}{}, prefixes: map[string]struct{}{}}
	for i, k := range from.Keys {
		if k == "" {
			return nil, fmt.Errorf("layer: %s.Keys[%d] is empty", name, i)
		}
		l.keys[k] = struct{}{}
	}
	for i, p := range from.Prefixes {
		if p == "" {
			return nil, fmt.Errorf("layer: %s.Prefixes[%d] is empty: that is every key", name, i)
		}
		l.prefixes[p] = struct{}{}
		if !slices.Contains(l.lengths, len(p)) {
			l.lengths = append(l.lengths, len(p))
		}
	}
	for i, p := range from.Networks {
		if !p.IsValid() {
			return nil, fmt.Errorf("layer: %s.Networks[%d] is not a prefix", name, i)
		}
		l.networks.add(netaddr.Unmap(p))
	}
	return l, nil
}

// has tells whether a key that counts by the addresses at is on the list.
func (l *list) has(key string, at netip.Prefix) bool {
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
	return at.IsValid() && l.networks.contains(at)
}

// networks is a set of networks.
type networks struct {
	set map[netip.Prefix]struct{}
	// The lengths of those in it, each once.
	bits4, bits6 []int
}

func (n *networks) any() bool { return len(n.set) > 0 }

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

// contains tells whether all of p is in one of the networks.
func (n *networks) contains(p netip.Prefix) bool {
	all := n.bits6
	if p.Addr().Is4() {
		all = n.bits4
	}
	for _, bits := range all {
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

// addressAfterName finds the addresses in a key as a Policy makes it of one by address. A
// name has neither ":" nor "~" in it.
func addressAfterName(key string) netip.Prefix {
	if i := strings.IndexAny(key, ":~"); i >= 0 {
		key = key[i+1:]
	}
	return addrkey.Parse(key)
}
