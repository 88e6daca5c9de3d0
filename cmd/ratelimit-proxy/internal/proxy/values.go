package proxy

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// valueSet is a set of keys. It maps each value of the key's first part to the set of what follows
// it. After the last part, the set is nil.
type valueSet map[string]valueSet

// add adds a key, as [config.Key.Values] returns it.
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

// contains reports whether the key of a request is in the set. A request with several values for a
// part has no key.
func (s valueSet) contains(values [][]string) bool {
	return !slices.ContainsFunc(values, func(part []string) bool { return len(part) != 1 }) && s.containsAny(values)
}

// containsAny reports whether one of the keys is in the set that a request with several values for
// a part may have.
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
