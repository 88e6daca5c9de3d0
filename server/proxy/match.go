package proxy

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/server/proxy/config"
)

// matches reports whether r meets the condition. path is the request's path as [cleanPath]
// returns it.
func matches(m *config.Match, r *http.Request, path string) bool {
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, r.Method) {
		return false
	}
	if len(m.Hosts) > 0 {
		host := hostOf(r)
		if !slices.ContainsFunc(m.Hosts, func(h string) bool { return hostMatches(h, host) }) {
			return false
		}
	}
	if !matchesPath(m, path) {
		return false
	}
	for name, value := range m.Headers {
		values := r.Header[name]
		if value == "*" && len(values) > 0 {
			continue
		}
		if !slices.Contains(values, value) {
			return false
		}
	}
	return true
}

func hostMatches(want, host string) bool {
	if suffix, ok := strings.CutPrefix(want, "*"); ok {
		return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
	}
	return want == host
}

// matchesPath reports whether a path meets the condition on paths.
func matchesPath(m *config.Match, path string) bool {
	return len(m.Paths) == 0 || slices.ContainsFunc(m.Paths, func(p string) bool { return patternMatches(p, path) })
}

// patternMatches compares a pattern of [config.Match] and a clean path by their segments.
func patternMatches(pattern, path string) bool {
	pattern, deep := strings.CutSuffix(strings.TrimSuffix(pattern, "/"), "/**")
	pattern, path = strings.TrimPrefix(pattern, "/"), strings.TrimPrefix(path, "/")
	for pattern != "" {
		if path == "" {
			return false
		}
		var want, segment string
		want, pattern, _ = strings.Cut(pattern, "/")
		segment, path, _ = strings.Cut(path, "/")
		if want != "*" && want != segment {
			return false
		}
	}
	return path == "" || deep
}

// isMethod reports whether m is the name of a method. One with a lower-case letter isn't: some
// servers read "post" as POST.
func isMethod(m string) bool {
	return m != "" && !strings.ContainsFunc(m, func(c rune) bool {
		return (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
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
