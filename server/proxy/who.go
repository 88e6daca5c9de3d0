package proxy

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
)

// who is a list of clients: addresses, and values of a rule's key.
type who struct {
	prefixes []netip.Prefix
	values   map[string]bool
}

func newWho(entries []string) *who {
	if len(entries) == 0 {
		return nil
	}
	w := &who{values: map[string]bool{}}
	for _, e := range entries {
		if p, err := netip.ParsePrefix(e); err == nil {
			w.prefixes = append(w.prefixes, unmapped(p))
		} else if a, err := netip.ParseAddr(e); err == nil {
			a = a.Unmap().WithZone("")
			w.prefixes = append(w.prefixes, netip.PrefixFrom(a, a.BitLen()))
		} else {
			w.values[e] = true
		}
	}
	return w
}

// has tells whether a request is of somebody on the list. The nil list is empty.
func (w *who) has(r *http.Request, key *template, address netip.Addr) bool {
	if w == nil {
		return false
	}
	if address.IsValid() && slices.ContainsFunc(w.prefixes, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return true
	}
	return len(w.values) > 0 && w.values[key.value(r, text(address))]
}

// text returns an address, "" if there is none.
func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// text returns the address of who has sent a request, "" if it has none.
func (c *clients) text(ctx context.Context, r *http.Request) string { return text(c.address(ctx, r)) }
