package config

import (
	"slices"
	"strings"
)

// MatchesHost reports whether a host, as [ParseHost] returns it, meets the condition on hosts.
func (m *Match) MatchesHost(host string) bool {
	return len(m.Hosts) == 0 || slices.ContainsFunc(m.Hosts, func(h string) bool { return hostMatches(h, host) })
}

func hostMatches(want, host string) bool {
	if suffix, ok := strings.CutPrefix(want, "*"); ok {
		return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
	}
	return want == host
}

// MatchesPath reports whether a clean and decoded path meets the condition on paths.
func (m *Match) MatchesPath(path string) bool {
	return len(m.Paths) == 0 || slices.ContainsFunc(m.Paths, func(p string) bool { return patternMatches(p, path) })
}

// patternMatches compares a pattern and a clean path by their segments.
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

// covers reports whether m matches every request that n matches.
func (m *Match) covers(n *Match) bool {
	for name, value := range m.Headers {
		if other, ok := n.Headers[name]; !ok || value != "*" && value != other {
			return false
		}
	}
	equal := func(a, b string) bool { return a == b }
	paths := n.Paths
	if len(paths) == 0 {
		paths = []string{"/**"}
	}
	return coverAll(m.Methods, n.Methods, equal) && coverAll(m.Hosts, n.Hosts, hostMatches) && coverAll(m.Paths, paths, patternCovers)
}

// excludesMethods reports whether m and n match different methods.
func (m *Match) excludesMethods(n *Match) bool {
	return len(m.Methods) > 0 && len(n.Methods) > 0 && !slices.ContainsFunc(m.Methods, func(method string) bool { return slices.Contains(n.Methods, method) })
}

// coverAll reports whether each value of narrow is covered by one of wide. An empty list covers
// all values, and only an empty list covers it.
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

// claims are the conditions of entries that leave none of their requests to the entries after them.
type claims []claim

type claim struct {
	field string
	match Match // in its normal form
}

// with returns the claims and one more.
func (c claims) with(field string, m Match) claims {
	m.normalize()
	return append(c, claim{field, m})
}

// coverOf returns the field of a claim to all requests that match m, "" if there is none.
func (c claims) coverOf(m Match) string {
	m.normalize()
	for i := range c {
		if c[i].match.covers(&m) {
			return c[i].field
		}
	}
	return ""
}
