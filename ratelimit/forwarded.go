package ratelimit

import (
	"context"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/internal/netaddr"
)

// client returns the address of the client that sent r. It checks the peer's address and then the addresses in the header,
// from right to left. The first address that does not belong to a trusted proxy is the client's. If there is none, client
// returns the last valid address, or the zero Addr. The address has no zone and is not IPv4-mapped.
func (o *IPOptions) client(ctx context.Context, r *http.Request) netip.Addr {
	var peer netip.Addr
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		peer = at.Addr().Unmap().WithZone("")
		if !netaddr.Within(o.TrustedProxies, peer) {
			return peer
		}
	} else if !o.TrustUnixSocket || !isUnixSocket(ctx) {
		return peer
	}
	for a := range forwardedAddrs(o.Header, r.Header[o.Header]) {
		switch {
		case !a.IsValid():
			return peer
		case !netaddr.Within(o.TrustedProxies, a):
			return a
		}
		peer = a
	}
	return peer
}

// isUnixSocket reports whether the connection uses a Unix socket. It checks the server's address, because the client's end
// has no name.
func isUnixSocket(ctx context.Context) bool {
	a, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	return ok && a.Network() == "unix"
}

// forwardedAddrs returns the addresses in a header, from the last to the first. It reads all lines as a single list. It
// yields the zero Addr for an element that is not an address, and nothing for an empty element.
//
// It reads the list from the right. A client controls the left part of the list. This part, for example a quote that never
// ends, must not change how the right part is read.
func forwardedAddrs(header string, lines []string) iter.Seq[netip.Addr] {
	parse, quotes := parseHop, header == "Forwarded"
	if quotes {
		parse = parseForwarded
	}
	return func(yield func(netip.Addr) bool) {
		for _, line := range slices.Backward(lines) {
			for more := true; more; {
				var last string
				line, last, more = cutLast(line, ',', quotes)
				if last = strings.Trim(last, " \t"); last != "" && !yield(parse(last)) {
					return
				}
			}
		}
	}
}

// cutLast cuts off the last element of a list. If quotes is true, elements may contain quoted strings with separators.
func cutLast(list string, separator byte, quotes bool) (rest, last string, more bool) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case quotes && list[i] == '"' && !(quoted && isEscaped(list, i)):
			quoted = !quoted
		case list[i] == separator && !quoted:
			return list[:i], list[i+1:], true
		}
	}
	return "", list, false
}

// isEscaped reports whether an odd number of backslashes is before s[i].
func isEscaped(s string, i int) bool {
	n := 0
	for i--; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// parseForwarded returns the address in an element's "for" parameter, as in for="[2001:db8::1]:4711";proto=https. It returns
// the zero Addr if the element has no such parameter or several.
func parseForwarded(element string) netip.Addr {
	var node string
	for rest, more := element, true; more; {
		var pair string
		rest, pair, more = cutLast(rest, ';', true)
		name, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if !strings.EqualFold(name, "for") {
			continue
		}
		if node != "" { // a second "for" makes the element ambiguous
			return netip.Addr{}
		}
		if node = unquote(value); node == "" {
			return netip.Addr{}
		}
	}
	return parseHop(node)
}

// unquote returns a token unchanged and a quoted string without its quotes. It leaves escapes alone, because no
// address needs them.
func unquote(s string) string {
	if inner, ok := strings.CutPrefix(s, `"`); ok {
		if inner, ok = strings.CutSuffix(inner, `"`); ok {
			return inner
		}
	}
	return s
}

// parseHop returns the address of an element, without port and zone: 192.0.2.1, 192.0.2.1:80, 2001:db8::1,
// [2001:db8::1] or [2001:db8::1]:80.
func parseHop(s string) netip.Addr {
	host, port := s, ""
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if host, port, ok = strings.Cut(inner, "]"); !ok || !strings.Contains(host, ":") {
			return netip.Addr{}
		}
	} else if strings.Count(s, ":") == 1 {
		i := strings.IndexByte(s, ':')
		host, port = s[:i], s[i:]
	}
	a, err := netip.ParseAddr(host)
	if err != nil || !isForwardedPort(port) {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// isForwardedPort reports whether s is empty, a port such as ":80", or an obfuscated port of RFC 7239, such as ":_hidden".
func isForwardedPort(s string) bool {
	if s == "" {
		return true
	}
	number, ok := strings.CutPrefix(s, ":")
	if !ok || number == "" {
		return false
	}
	if number[0] == '_' {
		return len(number) > 1
	}
	_, err := strconv.ParseUint(number, 10, 16)
	return err == nil
}
