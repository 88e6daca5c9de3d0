package config

import (
	"slices"
	"strings"
)

// MatchesHost reports whether host matches m.Hosts. host must be a result of [ParseHost]. If Hosts is empty, all
// hosts match.
func (m *Match) MatchesHost(host string) bool {
	return len(m.Hosts) == 0 || slices.ContainsFunc(m.Hosts, func(h string) bool { return hostMatches(h, host) })
}

func hostMatches(want, host string) bool {
	if suffix, ok := strings.CutPrefix(want, "*"); ok {
		return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
	}
	return want == host
}

// MatchesPath reports whether a decoded path without empty segments matches m.Paths. If Paths is empty, all paths
// match.
func (m *Match) MatchesPath(path string) bool {
	return len(m.Paths) == 0 || slices.ContainsFunc(m.Paths, func(p string) bool { return patternMatches(p, path) })
}

// patternMatches reports whether a path matches a pattern. It compares them segment by segment.
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

// cutDeep returns the pattern without "/**" at its end, and reports whether the pattern ends with it.
func cutDeep(pattern string) (base string, deep bool) {
	return strings.CutSuffix(strings.TrimSuffix(pattern, "/"), "/**")
}

// covers reports whether m matches every request that n matches.
func (m Match) covers(n Match) bool {
	m.normalize()
	n.normalize()
	for name, value := range m.Headers {
		if other, ok := n.Headers[name]; !ok || value != "*" && value != other {
			return false
		}
	}
	if len(n.Paths) == 0 {
		n.Paths = []string{"/**"}
	}
	equal := func(a, b string) bool { return a == b }
	return coverAll(m.Methods, n.Methods, equal) && coverAll(m.Hosts, n.Hosts, hostMatches) && coverAll(m.Paths, n.Paths, patternCovers)
}

// coverAll reports whether each value in narrow is covered by a value in wide. An empty list stands for all values.
func coverAll(wide, narrow []string, covers func(wide, narrow string) bool) bool {
	return len(wide) == 0 || len(narrow) > 0 && !slices.ContainsFunc(narrow, func(n string) bool {
		return !slices.ContainsFunc(wide, func(w string) bool { return covers(w, n) })
	})
}

// patternCovers reports whether the pattern wide matches every path that narrow matches.
func patternCovers(wide, narrow string) bool {
	base, narrowDeep := cutDeep(narrow)
	_, wideDeep := cutDeep(wide)
	return patternMatches(wide, base) && (wideDeep || !narrowDeep)
}
