package config

import (
	"slices"
	"strings"
)

// MatchesHost reports whether m.Hosts allows host, which must be a result of [ParseHost]. An empty Hosts allows every
// host.
func (m *Match) MatchesHost(host string) bool {
	return len(m.Hosts) == 0 || slices.ContainsFunc(m.Hosts, func(h string) bool { return hostMatches(h, host) })
}

func hostMatches(want, host string) bool {
	if suffix, ok := strings.CutPrefix(want, "*"); ok {
		return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
	}
	return want == host
}

// MatchesPath reports whether Paths allows a clean and decoded path.
func (m *Match) MatchesPath(path string) bool {
	return len(m.Paths) == 0 || slices.ContainsFunc(m.Paths, func(p string) bool { return patternMatches(p, path) })
}

// patternMatches compares a pattern with a clean path, segment by segment.
func patternMatches(pattern, path string) bool {
	pattern, deep := cutDeep(pattern)
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

// cutDeep returns a pattern without the "/**" at its end, and whether it has one.
func cutDeep(pattern string) (base string, deep bool) {
	return strings.CutSuffix(strings.TrimSuffix(pattern, "/"), "/**")
}

// matchesAll reports whether m matches every request.
func (m *Match) matchesAll() bool {
	return len(m.Methods) == 0 && len(m.Hosts) == 0 && len(m.Paths) == 0 && len(m.Headers) == 0
}
