package proxy

import (
	"net/http"
	"net/textproto"
	"slices"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// matches reports whether r meets the condition. path is the request's path as [cleanPath]
// returns it.
func matches(m *config.Match, r *http.Request, path string) bool {
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, r.Method) {
		return false
	}
	if len(m.Hosts) > 0 && !m.MatchesHost(hostOf(r)) || !m.MatchesPath(path) {
		return false
	}
	for name, value := range m.Headers {
		part := config.KeyPart{Kind: "header", Name: name}
		if !slices.ContainsFunc(r.Header[name], func(v string) bool { return value == "*" || value == part.Normalize(v) }) {
			return false
		}
	}
	return true
}

// hasPaddedValue reports whether a header's value begins or ends with a space. HTTP/1 removes
// such spaces, and HTTP/2 forbids them, but net/http accepts them.
func hasPaddedValue(h http.Header) bool {
	for _, values := range h {
		for _, v := range values {
			if v != textproto.TrimString(v) {
				return true
			}
		}
	}
	return false
}

// hasHost reports whether a request names exactly one valid host. An HTTP/2 request may have
// both :authority and Host.
func hasHost(r *http.Request) bool {
	host, ok := config.ParseHost(r.Host)
	for _, line := range r.Header["Host"] {
		other, _ := config.ParseHost(line)
		ok = ok && other == host
	}
	return ok
}

// hostOf returns the host of a request that has one.
func hostOf(r *http.Request) string {
	host, _ := config.ParseHost(r.Host)
	return host
}
