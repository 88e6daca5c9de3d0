package config

import (
	"net/netip"
	"strconv"
	"strings"
)

// ParseHost returns the host of a Host header or an :authority, without the port. A name is returned in lower case
// and without a trailing dot. An IPv6 address is returned in brackets and in its shortest form. ParseHost returns
// false if text is not a host, because servers would read it differently. A name may have only letters, digits, "-",
// "_" and dots. RFC 3986 also allows other characters, but no real host name has them.
func ParseHost(text string) (host string, ok bool) {
	if inside, bracketed := strings.CutPrefix(text, "["); bracketed {
		inside, port, closed := strings.Cut(inside, "]")
		a, err := netip.ParseAddr(inside)
		if !closed || err != nil || !a.Is6() || a.Zone() != "" || !isPort(port) {
			return "", false
		}
		return "[" + a.String() + "]", true
	}
	name := text
	if colon := strings.IndexByte(text, ':'); colon >= 0 {
		name = text[:colon]
		if !isPort(text[colon:]) {
			return "", false
		}
	}
	name = strings.TrimSuffix(name, ".")
	if len(name) > 253 || !isName(name) {
		return "", false
	}
	return strings.ToLower(name), true
}

// isHostWithoutPort reports whether text is a host that names no port.
func isHostWithoutPort(text string) bool {
	_, ok := ParseHost(text)
	return ok && strings.LastIndexByte(text, ':') <= strings.LastIndexByte(text, ']')
}

// isName reports whether name consists of labels that are separated by dots.
func isName(name string) bool {
	dot := true // the previous character was a dot, or there is none
	for i := range len(name) {
		switch c := name[i]; {
		case c == '.' && dot:
			return false
		case c == '.', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			dot = c == '.'
		default:
			return false
		}
	}
	return !dot
}

// isPort reports whether text is empty or ":" and a port from 1 to 65535.
func isPort(text string) bool {
	if text == "" {
		return true
	}
	n, err := strconv.ParseUint(text[1:], 10, 16)
	return text[0] == ':' && err == nil && n > 0
}
