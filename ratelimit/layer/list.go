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
	keys     map[string]bool
	prefixes prefixSet[string]
	networks prefixSet[netip.Prefix]
}

// newList returns an error if an entry is invalid; name is the list's field.
func newList(name string, from List) (*list, error) {
	l := &list{keys: map[string]bool{}}
	for i, k := range from.Keys {
		if k == "" {
			return nil, option.Errorf("layer", fmt.Sprintf("%s.Keys[%d]", name, i), "is empty")
		}
		l.keys[k] = true
	}
	for i, p := range from.Prefixes {
		if p == "" {
			return nil, option.Errorf("layer", fmt.Sprintf("%s.Prefixes[%d]", name, i), "is empty, which would match every key")
		}
		l.prefixes.add(p, len(p))
	}
	for i, p := range from.Networks {
		if !p.IsValid() {
			return nil, option.Errorf("layer", fmt.Sprintf("%s.Networks[%d]", name, i), "is not a prefix")
		}
		p = netaddr.Unmap(p)
		l.networks.add(p, p.Bits())
	}
	return l, nil
}

// contains reports whether the list matches a key that counts by these addresses. A network
// contains them if it contains all of them.
func (l *list) contains(key string, addresses netip.Prefix) bool {
	return l.keys[key] || l.prefixes.match(len(key), func(n int) string { return key[:n] }) ||
		l.networks.match(addresses.Bits(), func(n int) netip.Prefix {
			wider, _ := addresses.Addr().Prefix(n) // fails only for lengths that are too long
			return wider
		})
}

// prefixSet is a set of prefixes, of strings or addresses. The zero value is empty.
type prefixSet[P comparable] struct {
	set     map[P]bool
	lengths []int // distinct lengths of the prefixes
}

func (s *prefixSet[P]) add(p P, length int) {
	if s.set == nil {
		s.set = map[P]bool{}
	}
	s.set[p] = true
	if !slices.Contains(s.lengths, length) {
		s.lengths = append(s.lengths, length)
	}
}

// match reports whether a prefix of a value is in the set. cut returns the value's first n units.
func (s *prefixSet[P]) match(length int, cut func(n int) P) bool {
	return slices.ContainsFunc(s.lengths, func(n int) bool { return n <= length && s.set[cut(n)] })
}

// policyAddress returns the addresses in a policy's key, which follow its name. A name contains
// neither ":" nor "~".
func policyAddress(key string) netip.Prefix {
	if i := strings.IndexAny(key, ":~"); i >= 0 {
		key = key[i+1:]
	}
	return addrkey.Parse(key)
}
