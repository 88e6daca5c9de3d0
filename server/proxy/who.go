package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// who is a list of clients: addresses, and values of a rule's key.
type who struct {
	prefixes []netip.Prefix
	values   map[string]bool
}

func newWho(entries []string, key *template, field string, f *faults) *who {
	if len(entries) == 0 {
		return nil
	}
	w := &who{values: map[string]bool{}}
	for i, e := range entries {
		if p, err := netip.ParsePrefix(e); err == nil {
			w.prefixes = append(w.prefixes, netaddr.Unmap(p))
		} else if a, err := netip.ParseAddr(e); err == nil {
			a = a.Unmap().WithZone("")
			w.prefixes = append(w.prefixes, netip.PrefixFrom(a, a.BitLen()))
		} else if looksLikeAddress(e) || key.isAddress() || key.spelled(e) == "" {
			f.addf(fmt.Sprintf("%s[%d]", field, i), "%q is no address or network, and no value of the key", e)
		} else {
			w.values[key.spelled(e)] = true
		}
	}
	return w
}

// looksLikeAddress tells whether something is, but for a slip, an address of IPv4.
func looksLikeAddress(e string) bool {
	return strings.Count(e, ".") == 3 && strings.Trim(e, "0123456789./") == ""
}

// mentions is has for a list that forbids: whatever is there several times, each counts.
func (w *who) mentions(r *http.Request, key *template, address netip.Addr) bool {
	if w == nil {
		return false
	}
	if len(w.values) > 0 && len(key.parts) == 1 {
		if slices.ContainsFunc(key.parts[0].values(r), func(v string) bool { return w.values[v] }) {
			return true
		}
	}
	return w.has(r, key, address)
}

// has tells whether a request is of somebody on the list. The nil list is empty.
func (w *who) has(r *http.Request, key *template, address netip.Addr) bool {
	if w == nil {
		return false
	}
	if address.IsValid() && netaddr.Within(w.prefixes, address) {
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
